"""The use cases of games: load, ask the rules, commit.

Every change walks the same way (`_change`): one load, which also asks whether the request was accepted before; the
time-out of a turn that is overdue; the decision, which is the engine's; one commit, fenced by the history that was
decided on. A conflict starts over; a store that fails is asked once more where a request id makes that safe.

A turn of a game that this server remembers is first tried without the load (`_change_recalled`): the commit asks all
that the load would have asked, and what was decided counts only if it is stored.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from engine.actions import (
    Action,
    ClaimError,
    Join,
    Leave,
    RequestRedeal,
    Resign,
    SaveDraft,
    StartGame,
    StartNextRound,
    TimeOut,
)
from engine.analysis import Existence, Situation, options_needing_analysis
from engine.deal import Shuffle
from engine.events import Event, TileDrawn, TilesDrawn, TilesOffered, TilesPlayed, TurnPenalised
from engine.game import BotLevel, Game, Playing, bots_to_act, is_expired
from engine.melds import ProposedMeld
from engine.ruleset import Ruleset
from engine.tiles import Tile
from engine.turns import EXACT, Applied, apply, create, may_have_searched_all_racks
from engine.views import see
from engine.violations import Refused
from service.app.commands import Claim, DraftRequest, Request, TurnRequest
from service.app.identity import (
    Caller,
    Chance,
    digest,
    new_game_id,
    new_shuffle,
    requested_game_id,
    seat_of,
    seat_token,
)
from service.app.views import ChangeSight, GameSight, TurnSight, see_change, see_game
from service.errors import (
    ActionRefused,
    AlreadySeated,
    DuplicateRequest,
    EtagMismatch,
    Fault,
    GameNotFound,
    HistoryUnavailable,
    NotAPlayer,
    StaleState,
    StoreUnavailable,
    TurnTimedOut,
)
from service.storage.base import (
    NO_ETAG,
    Commit,
    Committed,
    Conflict,
    GameStore,
    Loaded,
    Memo,
    Outcome,
    Record,
    SeatToken,
    State,
    lineage,
)
from service.storage.snapshot import encode_change

ATTEMPTS: Final = 16
"""How often a change is decided anew when others change the game at the same time."""
RETRY_SECONDS: Final = 0.05
"""How long to wait before the store is asked once more."""
BOT_WAIT_MS: Final = 5_000
"""After what time somebody looks whether the bot whose turn it is has been forgotten, by a server that has died."""
HOLDS_MS: Final = 1_000
"""How long a decision on a game that was not loaded holds: no longer than one on a game that was."""
NONCE_BYTES: Final = 16
SALT_BYTES: Final = 32
DIGEST_BYTES: Final = 32
TOLD_SECONDS: Final = 0.25
"""In what steps it is told how long a search of other racks took: nearly all take less than one."""
SEARCH_THREADS: Final = 2
"""How many decisions that need a search are made at once. More would only share the interpreter with other calls."""


T = TypeVar("T")


class Elsewhere(Protocol):
    """Calls a function off the event loop."""

    async def __call__(self, decide: Callable[[], T]) -> T:
        """Returns what the function returns."""


@dataclass(frozen=True, slots=True)
class _Situation:
    """What a change is decided on.

    Attributes:
        record: The game.
        now_ms: The store's time.
        overdue_revision: The game's revision before this very request had a time-out applied to it, if it had.
        until_ms: Until when it holds, if this server only remembers it (Commit.until_ms).
    """

    record: Record
    now_ms: int
    overdue_revision: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Decision:
    """A change decided: the engine's answer, the seats' tokens after it, the answer made of the new record."""

    applied: Applied
    tokens: tuple[SeatToken, ...]
    answer: Callable[[Record], bytes]
    salt: bytes = b""


@dataclass(frozen=True, slots=True)
class _OnTrial:
    """What the rules are told of what could be played while a turn is only judged: only what a player can know.

    No refusal asks for more. What the pool and other racks hold decides on what follows, which a trial does not tell:
    a search there would tell it by the time that it takes.

    Attributes:
        rack: The player's tiles.
    """

    rack: tuple[Tile, ...]

    def can_play(self, situation: Situation) -> Existence:
        """See Analysis. UNKNOWN of any other rack."""
        return EXACT.can_play(situation) if situation.rack == self.rack else Existence.UNKNOWN


def _allowed(outcome: Applied | Refused) -> Applied:
    if isinstance(outcome, Refused):
        raise ActionRefused(outcome)
    return outcome


def _time_out(situation: _Situation) -> Applied:
    return _allowed(apply(situation.record.game, TimeOut(), situation.now_ms))


def _as_stored(answer: bytes, _salt: bytes) -> bytes:
    return answer


def _just_stored(record: Record, seat: int | None) -> GameSight:
    """A game as it is seen at the moment of its last change."""
    return see_game(record, seat, record.updated_ms)


def _found(record: Record | None, caller: Caller) -> tuple[Record, int | None]:
    """The game and the caller's seat; a game that is not there and a token that is not of the game are one."""
    if record is None:
        raise GameNotFound
    seat = seat_of(caller, record.tokens)
    if seat is None and caller.digest is not None:
        raise GameNotFound
    return record, seat


def seat_in(record: Record, caller: Caller) -> int | None:
    """Returns the caller's seat in a game; None for a spectator. Raises GameNotFound for a token of another game."""
    return _found(record, caller)[1]


def _new_seat(before: Game, after: Game) -> int:
    """The seat of the player who has joined."""
    taken = {player.seat for player in before.players}
    return next(player.seat for player in after.players if player.seat not in taken)


def _free_name(game: Game) -> str:
    """The name of a bot that has not been given one."""
    taken = {player.name for player in game.players}
    return next(name for number in itertools.count(1) if (name := f"Bot {number}") not in taken)


def _seated(record: Record, caller: Caller) -> int:
    """The caller's seat. A game never tells a wrong token from a game that is not there."""
    _, seat = _found(record, caller)
    if seat is None:
        raise NotAPlayer
    return seat


def _holds_until(record: Record, now_ms: int) -> int:
    """Until when a decision on a game that was not loaded may be stored: never after the deadline that it keeps."""
    deadline_ms = _deadline_ms(record)
    return now_ms + HOLDS_MS if deadline_ms is None else min(now_ms + HOLDS_MS, deadline_ms)


def _deadline_ms(record: Record) -> int | None:
    """The deadline of the turn in progress, if there is one."""
    return record.game.phase.round.turn.deadline_ms if isinstance(record.game.phase, Playing) else None


class Games:
    """The use cases of games on a store.

    Args:
        store: Where games are kept.
        chance: Where randomness comes from.
        bot_wait_ms: How long a bot may take before it seems to have been forgotten.
    """

    def __init__(self, store: GameStore, chance: Chance, bot_wait_ms: int = BOT_WAIT_MS) -> None:
        self._store = store
        self._chance = chance
        self._bot_wait_ms = bot_wait_ms
        self._tell_of_bots: Callable[[Record], None] = lambda _: None
        # not the event loop's own threads, which also look up the store's address
        self._searches = ThreadPoolExecutor(SEARCH_THREADS, "rules")

    def tell_of_bots(self, tell: Callable[[Record], None]) -> None:
        """Has someone told of each game in which a bot is to act: after the change, and when it seems forgotten."""
        self._tell_of_bots = tell

    def next_look(self, loaded: Loaded) -> int | None:
        """When to look at a game that nobody calls on; None: not before a round starts or a bot is to act.

        At its deadline, or when a bot that is to act would seem to have been forgotten.
        """
        if loaded.record is None:
            return None
        deadline_ms = _deadline_ms(loaded.record)
        if not bots_to_act(loaded.record.game):
            return deadline_ms
        wait_ms = loaded.now_ms + self._bot_wait_ms
        return wait_ms if deadline_ms is None else min(wait_ms, deadline_ms)

    async def create_game(self, ruleset: Ruleset, request: Request, encode: Callable[[GameSight], bytes]) -> bytes:
        """Creates a game; the ruleset has no problems."""
        return await self._retrying(request, lambda: self._create(ruleset, request, encode))

    async def _create(self, ruleset: Ruleset, request: Request, encode: Callable[[GameSight], bytes]) -> bytes:
        game_id = new_game_id(self._chance)
        if request.key:
            game_id = requested_game_id(await self._store.secret(), request.key)
        loaded = await self._store.load(game_id, request.key)
        if loaded.memo:
            return _replay(loaded.memo, request, _as_stored)
        if loaded.record:  # the store has lost the memo; nothing of the game may change, its place in the lists neither
            raise StaleState(loaded.record.game.revision)
        now_ms = loaded.now_ms
        applied = create(ruleset)
        to_be = Record(game_id, applied.game, NO_ETAG, (), now_ms, now_ms)
        decision = _Decision(applied, (), lambda record: encode(see_game(record, None, now_ms)))
        await self._store.check_room()
        await self._store.index(to_be)  # before the commit: a list may name a game too much, but never lacks one
        try:
            return await self._commit(_Situation(to_be, now_ms), decision, request)
        except _Overtaken:
            raise StaleState(applied.game.revision) from None

    async def join_game(
        self,
        game_id: str,
        name: str,
        request: Request,
        encode: Callable[[GameSight, int], bytes],
        with_token: Callable[[bytes, str], bytes],
    ) -> bytes:
        """Seats a player; the token is put into the answer after it was remembered without."""

        def decide(situation: _Situation) -> _Decision:
            record, seat = _found(situation.record, request.caller)
            if seat is not None:
                raise AlreadySeated
            applied = _allowed(apply(record.game, Join(name), situation.now_ms))
            new_seat = _new_seat(record.game, applied.game)
            salt = self._chance.token_bytes(SALT_BYTES)
            token = SeatToken(new_seat, digest(seat_token(salt, request.request_id)))
            return _Decision(
                applied,
                (*record.tokens, token),
                lambda after: encode(_just_stored(after, new_seat), new_seat),
                salt,
            )

        def finish(answer: bytes, salt: bytes) -> bytes:
            return with_token(answer, seat_token(salt, request.request_id))

        return await self._change(game_id, request, decide, finish)

    async def add_bot(
        self, game_id: str, level: BotLevel, name: str, request: Request, encode: Callable[[GameSight, int], bytes]
    ) -> bytes:
        """Seats a bot for a player of the lobby; "" for a name that nobody has.

        What is stored of its token is chance, the digest of a token that nobody knows: only the service acts for it.
        """

        def decide(situation: _Situation) -> _Decision:
            record = situation.record
            seat = _seated(record, request.caller)
            join = Join(name or _free_name(record.game), level)
            applied = _allowed(apply(record.game, join, situation.now_ms))
            bot = _new_seat(record.game, applied.game)
            token = SeatToken(bot, self._chance.token_bytes(DIGEST_BYTES))
            return _Decision(applied, (*record.tokens, token), lambda after: encode(_just_stored(after, seat), bot))

        return await self._change(game_id, request, decide)

    async def leave_game(self, game_id: str, request: Request, encode: Callable[[GameSight], bytes]) -> bytes:
        """Frees the caller's seat in the lobby and voids its token."""

        def decide(situation: _Situation) -> _Decision:
            record = situation.record
            seat = _seated(record, request.caller)
            applied = _allowed(apply(record.game, Leave(seat), situation.now_ms))
            tokens = tuple(token for token in record.tokens if token.seat != seat)
            return _Decision(applied, tokens, lambda after: encode(_just_stored(after, None)))

        return await self._change(game_id, request, decide)

    async def start_game(self, game_id: str, request: Request, encode: Callable[[GameSight], bytes]) -> bytes:
        """Starts the first round."""
        return await self._act(game_id, request, encode, lambda seat, game: StartGame(seat, self._shuffle(game)))

    async def start_next_round(self, game_id: str, request: Request, encode: Callable[[GameSight], bytes]) -> bytes:
        """Starts the next round."""
        return await self._act(game_id, request, encode, lambda seat, game: StartNextRound(seat, self._shuffle(game)))

    async def request_redeal(self, game_id: str, request: Request, encode: Callable[[GameSight], bytes]) -> bytes:
        """Has the round dealt anew."""
        return await self._act(game_id, request, encode, lambda seat, game: RequestRedeal(seat, self._shuffle(game)))

    async def resign_game(self, game_id: str, request: Request, encode: Callable[[GameSight], bytes]) -> bytes:
        """Gives up the game."""
        return await self._act(game_id, request, encode, lambda seat, _: Resign(seat))

    async def claim_error(self, claim: Claim, request: Request, encode: Callable[[GameSight], bytes]) -> bytes:
        """Votes on an illegal play that is shown."""

        def action(seat: int, _game: Game) -> Action:
            return ClaimError(seat, claim.play_revision, claim.agrees)

        return await self._act(claim.game_id, request, encode, action)

    def _shuffle(self, game: Game) -> Shuffle:
        return new_shuffle(self._chance, game.ruleset, len(game.active_seats))

    async def _act(
        self,
        game_id: str,
        request: Request,
        encode: Callable[[GameSight], bytes],
        action: Callable[[int, Game], Action],
        check: Callable[[_Situation], None] = lambda _: None,
    ) -> bytes:
        """A seated player's action that the rules judge on the game as it is, if the check finds no fault."""

        def decide(situation: _Situation) -> _Decision:
            record = situation.record
            seat = _seated(record, request.caller)
            check(situation)
            applied = _allowed(apply(record.game, action(seat, record.game), situation.now_ms))
            return _Decision(applied, record.tokens, lambda after: encode(_just_stored(after, seat)))

        return await self._change(game_id, request, decide)

    async def play_turn(
        self,
        turn: TurnRequest,
        request: Request,
        encode: Callable[[TurnSight], bytes],
        judge: "Elsewhere | None" = None,
    ) -> bytes:
        """Takes a turn on the very revision that the player saw, or judges it (validate_only).

        Args:
            turn: The turn.
            request: What makes the request safe to repeat.
            encode: Encodes the answer.
            judge: Decides off the event loop, of a turn that may take long.
        """

        def decide(situation: _Situation) -> _Decision:
            record = situation.record
            seat = _seated(record, request.caller)
            _check_revision(turn, situation)
            analysis = _OnTrial(see(record.game, seat).rack) if turn.validate_only else EXACT
            applied = _allowed(apply(record.game, turn.action(seat), situation.now_ms, analysis))
            return _Decision(
                applied, record.tokens, lambda after: encode(_turn_sight(_just_stored(after, seat), applied))
            )

        if not turn.validate_only and judge is None:
            return await self._retrying(request, lambda: self._try_turn(turn.game_id, request, decide))
        if not turn.validate_only:
            return await self._change(turn.game_id, request, decide, elsewhere=judge)
        situation = await self._situation(turn.game_id)
        seat = _seated(situation.record, request.caller)
        game = see_game(situation.record, seat, situation.now_ms)
        applied = (await self._decided(decide, situation, judge)).applied
        if applied.violations:
            raise ActionRefused(Refused(applied.violations))
        return encode(replace(_turn_sight(game, applied), tiles_drawn=()))

    async def save_draft(self, draft: DraftRequest, request: Request, encode: Callable[[GameSight], bytes]) -> bytes:
        """Keeps the table as a player has it under their hands."""

        def action(seat: int, game: Game) -> Action:
            return SaveDraft(seat, _as_it_lies(game) if draft.table is None else draft.table)

        return await self._act(
            draft.game_id, request, encode, action, lambda situation: _check_revision(draft, situation)
        )

    async def look(self, game_id: str, caller: Caller) -> tuple[Record, int | None, int]:
        """Returns the game, the caller's seat, and the time; a turn that is overdue is timed out first."""
        loaded = await self.load(game_id)
        return *_found(loaded.record, caller), loaded.now_ms

    async def get_game(self, game_id: str, caller: Caller) -> GameSight:
        """The game as the caller may see it."""
        return see_game(*await self.look(game_id, caller))

    async def list_games(self, state: State, cursor: str, limit: int) -> tuple[tuple[GameSight, ...], str]:
        """Games of a state as a spectator sees them, the newest first, and the next cursor."""
        records, following = await self._store.page(state, cursor, limit)
        return tuple(_just_stored(record, None) for record in records), following

    async def list_turns(
        self, game_id: str, caller: Caller, first_revision: int, limit: int
    ) -> tuple[tuple[ChangeSight, ...], int]:
        """A game's changes from a revision on (0: the oldest kept), and the revision to go on with; 0 at the end."""
        _, seat, _ = await self.look(game_id, caller)
        entries = await self._store.events(game_id, first_revision, limit + 1)
        if first_revision and (not entries or entries[0].revision != first_revision):
            raise HistoryUnavailable(*await self._store.bounds(game_id))
        following = entries[limit].revision if len(entries) > limit else 0
        return tuple(see_change(entry, seat) for entry in entries[:limit]), following

    async def load(self, game_id: str) -> Loaded:
        """Returns what is stored of a game, for readers: settled, or overdue if the store refuses the time-out."""
        try:
            return await self.settle(game_id)
        except StoreUnavailable:
            await asyncio.sleep(RETRY_SECONDS)
            return await self._store.load(game_id)

    async def settle(self, game_id: str) -> Loaded:
        """Returns what is stored of a game after the time-out of a turn that is overdue, if it is."""
        loaded, _ = await self._settled(game_id, "")
        return loaded

    async def _change(
        self,
        game_id: str,
        request: Request,
        decide: Callable[[_Situation], _Decision],
        finish: Callable[[bytes, bytes], bytes] = _as_stored,
        elsewhere: "Elsewhere | None" = None,
    ) -> bytes:
        return await self._retrying(request, lambda: self._try_change(game_id, request, decide, finish, elsewhere))

    async def _retrying(self, request: Request, attempt: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            return await attempt()
        except StoreUnavailable:
            if not request.key:
                raise
        await asyncio.sleep(RETRY_SECONDS)
        return await attempt()

    async def _try_change(
        self,
        game_id: str,
        request: Request,
        decide: Callable[[_Situation], _Decision],
        finish: Callable[[bytes, bytes], bytes],
        elsewhere: "Elsewhere | None" = None,
    ) -> bytes:
        revision = 0
        for _ in range(ATTEMPTS):
            loaded, overdue_revision = await self._settled(game_id, request.key)
            if loaded.memo:
                return _replay(loaded.memo, request, finish)
            if loaded.record is None:
                raise GameNotFound
            revision = loaded.record.game.revision
            situation = _Situation(loaded.record, loaded.now_ms, overdue_revision)
            decision = await self._decided_in_steps(decide, situation, lambda decision: decision.applied, elsewhere)
            with contextlib.suppress(_Overtaken):
                return await self._commit(situation, decision, request, finish)
        raise StaleState(revision)

    async def _try_turn(self, game_id: str, request: Request, decide: Callable[[_Situation], _Decision]) -> bytes:
        """A change by one commit where this server remembers the game, and else as any other."""
        recalled = self._recalled(game_id)
        if recalled is None:
            return await self._try_change(game_id, request, decide, _as_stored)
        try:
            return await self._change_recalled(recalled, request, decide)
        except _Overtaken:
            return await self._try_change(game_id, request, decide, _as_stored)

    def _recalled(self, game_id: str) -> _Situation | None:
        """A game as this server has last seen it.

        None where a load has to come first: where it has not seen it; for an overdue turn; and for what takes a search,
        which is not to be made in vain.
        """
        recalled = self._store.recall(game_id)
        if recalled is None or recalled.record is None:
            return None
        record, now_ms = recalled.record, recalled.now_ms
        if options_needing_analysis(record.game.ruleset) or is_expired(record.game, now_ms):
            return None
        return _Situation(record, now_ms, until_ms=_holds_until(record, now_ms))

    async def _change_recalled(
        self, situation: _Situation, request: Request, decide: Callable[[_Situation], _Decision]
    ) -> bytes:
        """Decides on the game as this server has last seen it; the commit finds out whether it is still that.

        Raises _Overtaken for every refusal, too, as nobody is refused for what may be over.
        """
        try:
            decision = decide(situation)
        except Fault:
            raise _Overtaken from None
        return await self._commit(situation, decision, request)

    async def _decided(
        self, decide: Callable[[_Situation], T], situation: _Situation, elsewhere: "Elsewhere | None" = None
    ) -> T:
        """Returns what is decided. Rules that ask what could be played may search for seconds, off the event loop."""
        if not options_needing_analysis(situation.record.game.ruleset):
            return decide(situation) if elsewhere is None else await elsewhere(lambda: decide(situation))
        return await asyncio.get_running_loop().run_in_executor(self._searches, decide, situation)

    async def _decided_in_steps(
        self,
        decide: Callable[[_Situation], T],
        situation: _Situation,
        applied: Callable[[T], Applied],
        elsewhere: "Elsewhere | None" = None,
    ) -> T:
        """The same of a change to store: the time that it takes does not tell what a search found on other racks.

        Args:
            decide: Decides.
            situation: What on.
            applied: The engine's answer in what is decided.
            elsewhere: Decides off the event loop.
        """
        began = asyncio.get_running_loop().time()
        decided = await self._decided(decide, situation, elsewhere)
        if may_have_searched_all_racks(applied(decided)):
            taken = asyncio.get_running_loop().time() - began
            await asyncio.sleep(TOLD_SECONDS - taken % TOLD_SECONDS)
        return decided

    async def _situation(self, game_id: str) -> _Situation:
        loaded, overdue_revision = await self._settled(game_id, "")
        if loaded.record is None:
            raise GameNotFound
        return _Situation(loaded.record, loaded.now_ms, overdue_revision)

    async def _settled(self, game_id: str, request_key: str) -> tuple[Loaded, int | None]:
        """Loads a game, and applies the time-out of an overdue turn: once, whoever comes first (R55).

        Returns:
            What is stored then, and the revision before the time-out, if this very call found the turn overdue.
        """
        loaded = await self._store.load(game_id, request_key)
        record = loaded.record
        if loaded.memo or record is None or not is_expired(record.game, loaded.now_ms):
            self._remember_bots(loaded)
            return loaded, None
        situation = _Situation(record, loaded.now_ms)
        applied = await self._decided_in_steps(_time_out, situation, lambda applied: applied)
        after, change = self._after(record, applied, record.tokens, loaded.now_ms)
        await self._stored(record, Commit(record.etag, after, change))
        return await self._store.load(game_id, request_key), record.game.revision

    def _after(
        self, record: Record, applied: Applied, tokens: tuple[SeatToken, ...], now_ms: int
    ) -> tuple[Record, bytes]:
        """The record after a change, and the change to store, with the etag that continues the record's lineage."""
        nonce = self._chance.token_bytes(NONCE_BYTES)
        change = encode_change(applied.game.revision, now_ms, nonce, applied.events)
        etag = lineage(record.etag, change)
        return Record(record.game_id, applied.game, etag, tokens, record.created_ms, now_ms), change

    async def _commit(
        self,
        situation: _Situation,
        decision: _Decision,
        request: Request,
        finish: Callable[[bytes, bytes], bytes] = _as_stored,
    ) -> bytes:
        """Stores a decision with the answer to its request. Raises _Overtaken when the game has changed meanwhile."""
        record = situation.record
        after, change = self._after(record, decision.applied, decision.tokens, situation.now_ms)
        answer, key = decision.answer(after), request.key
        memo = Memo(request.fingerprint, answer, decision.salt) if key else None
        outcome = await self._stored(
            record, Commit(record.etag, after, change, key, memo, request.sender, situation.until_ms)
        )
        match outcome:
            case Memo():
                return _replay(outcome, request, finish)
            case Conflict():
                raise _Overtaken
            case Committed():
                return finish(answer, decision.salt)

    async def _stored(self, before: Record, commit: Commit) -> Outcome:
        """Stores a change, and tells of the bots that act after it: also if nobody hears whether it is stored."""
        after = commit.record
        await self._arm(before, after)
        try:
            outcome = await self._store.commit(commit)
        except (StoreUnavailable, asyncio.CancelledError):
            self._tell(after)
            raise
        if isinstance(outcome, Committed):
            self._tell(after)
            await self._list(before, after)
        return outcome

    def _tell(self, record: Record) -> None:
        if bots_to_act(record.game):
            self._tell_of_bots(record)

    def _remember_bots(self, loaded: Loaded) -> None:
        """Tells of a bot that was to act long ago: the server that was told at first may have died."""
        record = loaded.record
        if record and loaded.now_ms - record.updated_ms >= self._bot_wait_ms:
            self._tell(record)

    async def _arm(self, before: Record, after: Record) -> None:
        """Before a round starts, has the sweeper look at the game by its first deadline; before a bot acts, soon.

        Deadlines only move forward, so the sweeper finds the later ones by itself, and no turn needs to write them. A
        bot's turn needs it: it may have no deadline, and it is found again by the sweeper if this server dies.
        """
        started = after.state is State.PLAYING and before.state is not State.PLAYING
        if not started and not bots_to_act(after.game):
            return
        looks = (_deadline_ms(before), self.next_look(Loaded(after.updated_ms, after, None)))
        known = [at_ms for at_ms in looks if at_ms is not None]
        if known:
            await self._store.arm(after.game_id, min(known))

    async def _list(self, before: Record, after: Record) -> None:
        """Lists a game under its new state. The change is stored: should this fail, lists are mended when read."""
        if before.state is not after.state:
            with contextlib.suppress(StoreUnavailable):
                await self._store.index(after)


class _Overtaken(Exception):  # noqa: N818 - a signal between two methods
    """Somebody else changed the game between load and commit."""


def _replay(memo: Memo, request: Request, finish: Callable[[bytes, bytes], bytes]) -> bytes:
    """The first answer again, if the content is the same."""
    if memo.fingerprint != request.fingerprint:
        raise DuplicateRequest
    return finish(memo.answer, memo.salt)


def _check_revision(turn: TurnRequest | DraftRequest, situation: _Situation) -> None:
    """The turn must be meant for the game as it is, in number and in lineage."""
    revision = situation.record.game.revision
    if situation.overdue_revision is not None and turn.expected_revision == situation.overdue_revision:
        raise TurnTimedOut(revision)
    if turn.expected_revision != revision:
        raise StaleState(revision)
    if turn.etag and turn.etag != situation.record.etag:
        raise EtagMismatch(revision)


def _as_it_lies(game: Game) -> tuple[ProposedMeld, ...]:
    """The table when the turn began, as a player would send it."""
    return tuple(ProposedMeld(meld.tiles, meld.kind) for meld in game.round.table) if game.round else ()


def _turn_sight(game: GameSight, applied: Applied) -> TurnSight:
    """What a player's own turn brought them."""
    played = next((event for event in applied.events if isinstance(event, TilesPlayed)), None)
    return TurnSight(
        game,
        tiles_played=played.tiles if played else (),
        points=played.points if played else 0,
        tiles_drawn=tuple(tile for event in applied.events for tile in _tiles_drawn(event)),
        violations=applied.violations,
    )


def _tiles_drawn(event: Event) -> tuple[Tile, ...]:
    """The tiles that an event of a player's own turn showed them."""
    match event:
        case TileDrawn(_, tile):
            return (tile,)
        case TilesDrawn(_, tiles) | TilesOffered(_, tiles) | TurnPenalised(_, tiles):
            return tiles
        case _:
            return ()
