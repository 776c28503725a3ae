"""The change loop: load a game, let a command decide, commit.

Every change takes the same steps. One load also looks up the answer to a repeated request. What is due in the game is
applied: the time-out of an overdue turn, or the next round after its pause. The command decides, by the engine's rules.
One commit stores the decision, fenced by the history that it was decided on. A conflict starts over. If the store
fails, the loop tries once more, provided that the request has an id.

A turn in a cached game is first decided without the load (`_commit_cached`). Its commit checks everything that the load
would have checked, and the decision takes effect only if it is stored.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Concatenate, Final, ParamSpec, TypeVar

from engine.events import PlayerKicked, PlayerLeft, SeatTakenOver, SeatTokenRenewed
from engine.game import Game, Lobby, Playing, bots_to_act
from engine.seats import HOST
from engine.timers import due_ms, earliest_due_ms, is_due
from engine.turns import Applied, may_have_searched_all_racks, may_search
from service.app.change_pace import REISSUES, ChangePace, costs_nothing
from service.app.commands.command import NO_ANSWER, Answer, Basis, Command, Decision, GameCommand, SeatAction
from service.app.commands.turns import decide_due
from service.app.history import OffLoopRunner
from service.app.identity import Caller, Chance, check_key, deal_secret, inbox_of, join_codes, seat_token
from service.errors import (
    DuplicateRequest,
    Fault,
    GameNotFound,
    StaleState,
    StoredFormatUnknown,
    StoreUnavailable,
    TicketUsed,
)
from service.model.change import NO_ETAG, TIME, Cause, CauseKind, Commit, Committed, Loaded, Memo, Outcome, lineage
from service.model.outbox import OUTBOX_VALID_MS
from service.model.record import KICKED_MAX, Kicked, OperatorData, PlayerRef, Record, code_name
from service.runtime.join_tickets import TICKET_MS_MAX, JoinTicket
from service.runtime.slow_calls import in_one_step
from service.storage.lists import listing_after
from service.storage.store import Store
from service.storage.stored_events import encode_change

ATTEMPTS: Final = 16
"""How often a change is decided again because others change the game at the same time."""
RETRY_SECONDS: Final = 0.05
"""The wait before a failed store is tried once more."""
BOT_WAIT_MS: Final = 5_000
"""How long after a change a bot that has not acted counts as forgotten, because its server may have died."""
SMALL_REVISIONS: Final = 128
"""Up to this revision a game has room in the store, whatever others do (GAME_GROWTH). Games of one round end before."""
ROOM_SECONDS: Final = 1.0
"""How old a measurement of the store's room may be for a change that needs more."""
CACHED_MS: Final = 1_000
"""How long a decision on a cached game is valid."""
NONCE_BYTES: Final = 16
SEARCH_STEP_SECONDS: Final = 0.25
"""Decisions that searched other racks take a multiple of this, so their time leaks little. Nearly all take one step."""
SEARCH_THREADS: Final = 2
"""Most decisions with a search at once. More threads would only compete with other calls for the interpreter."""


_C = TypeVar("_C", bound=Command)
_P = ParamSpec("_P")


class Overtaken(Exception):  # noqa: N818 - a signal between two methods
    """The game changed between load and commit."""


class ChangeLoop:
    """Applies commands to games in a store.

    Args:
        store: The store.
        chance: The source of randomness.
        bot_wait_ms: How long after a change and the game's own pause (bot_pause_ms) a bot counts as forgotten.
        on_change: Gets the game and the seat of each change that a person has made.
        is_archived: Whether finished games are archived, so that the store's outbox must name them.
    """

    def __init__(
        self,
        store: Store,
        chance: Chance,
        bot_wait_ms: int = BOT_WAIT_MS,
        on_change: Callable[[str, int], None] = lambda _game_id, _seat: None,
        *,
        is_archived: bool = False,
    ) -> None:
        self._store = store
        self._chance = chance
        self._bot_wait_ms = bot_wait_ms
        self._on_bot_turn: Callable[[Record], None] = lambda _: None
        self._on_change = on_change
        self._pace = ChangePace()
        self._on_cached: Callable[[bool], None] = lambda _: None
        self._is_archived = is_archived
        # The event loop's own threads also resolve the store's address, so searches must not occupy them.
        self._searches = ThreadPoolExecutor(SEARCH_THREADS, "rules")

    def on_bot_turn(self, callback: Callable[[Record], None]) -> None:
        """Sets a callback for games in which a bot is to act: after each change, and when the bot seems forgotten."""
        self._on_bot_turn = callback

    def on_cached(self, callback: Callable[[bool], None]) -> None:
        """Sets a callback for changes by `run_cached`: whether the decision on the cached game was stored."""
        self._on_cached = callback

    async def run(self, command: GameCommand, answer: Answer = NO_ANSWER, runner: OffLoopRunner | None = None) -> bytes:
        """Changes a game and returns the answer.

        Args:
            command: The change.
            answer: Encodes the answer.
            runner: Makes the decision off the event loop; for one that may take long.
        """
        return await self.retrying(self._try_change, command, answer, runner)

    async def run_cached(self, command: GameCommand, answer: Answer = NO_ANSWER) -> bytes:
        """Changes a game with one commit if it is cached, otherwise as `run` does."""
        return await self.retrying(self._try_cached, command, answer)

    async def basis(self, game_id: str, caller: Caller) -> Basis:
        """Returns a game to decide on, after what was due in it. Raises GameNotFound, for another key too."""
        loaded, overdue_revision = await self._settle(game_id, "", caller)
        if loaded.record is None:
            raise GameNotFound
        return Basis(loaded.record, loaded.now_ms, self._chance, overdue_revision)

    async def validate(self, command: GameCommand, runner: OffLoopRunner | None = None) -> tuple[Basis, Decision]:
        """Returns what a command is decided on, and its decision, without storing it. Raises a Fault if refused."""
        basis = await self.basis(command.game_id, command.request.caller)
        decision = await self.decide(command.decide, basis, runner)
        if decision.actor:
            self._on_change(command.game_id, decision.actor)
        return basis, decision

    async def load(self, game_id: str, caller: Caller | None = None) -> Loaded:
        """Returns a game for readers: settled, or still overdue if the store refuses that change.

        Args:
            game_id: The game.
            caller: Its key must be the game's, or GameNotFound is raised before anything changes; None: any.
        """
        try:
            loaded, _ = await self._settle(game_id, "", caller)
        except StoreUnavailable:
            await asyncio.sleep(RETRY_SECONDS)
            loaded = await self._store.games.load(game_id)
        return loaded

    async def settle(self, game_id: str) -> Loaded:
        """Returns a game after what was due in it: the time-out of a turn, or the start of the next round."""
        loaded, _ = await self._settle(game_id, "")
        return loaded

    async def decide(
        self, decide: Callable[[Basis], Decision], basis: Basis, runner: OffLoopRunner | None = None
    ) -> Decision:
        """Returns a decision. Rules that ask for possible plays may search for seconds, so they run in a thread."""
        if may_search(basis.record.game):
            return await asyncio.get_running_loop().run_in_executor(self._searches, decide, basis)
        if runner is None:
            return decide(basis)
        decision: Decision = await runner.run(in_one_step(lambda _: decide(basis), b""))
        return decision

    def next_look(self, loaded: Loaded) -> int | None:
        """Returns when to look at an idle game: when it can be due, or when a bot that is to act would seem forgotten.

        None: not before a round starts or ends, or a bot is to act.
        """
        if loaded.record is None:
            return None
        at_ms = earliest_due_ms(loaded.record.game, loaded.now_ms)
        if not bots_to_act(loaded.record.game):
            return at_ms
        wait_ms = loaded.now_ms + self._bot_wait_ms + loaded.record.game.settings.bot_pause_ms
        return wait_ms if at_ms is None else min(wait_ms, at_ms)

    @staticmethod
    async def retrying(
        attempt: Callable[Concatenate[_C, _P], Awaitable[bytes]], command: _C, *args: _P.args, **kwargs: _P.kwargs
    ) -> bytes:
        """Returns an attempt's answer. If the store fails, it tries once more, provided that the request has an id."""
        try:
            return await attempt(command, *args, **kwargs)
        except StoreUnavailable:
            if not command.request.request_id:
                raise
        await asyncio.sleep(RETRY_SECONDS)
        return await attempt(command, *args, **kwargs)

    async def _try_change(self, command: GameCommand, answer: Answer, runner: OffLoopRunner | None = None) -> bytes:
        revision = 0
        for _ in range(ATTEMPTS):
            loaded, overdue_revision = await self._settle(command.game_id, command.request.key, command.key_holder)
            if loaded.memo:
                return replay(loaded.memo, command, answer)
            if loaded.record is None:
                raise GameNotFound
            revision = loaded.record.game.revision
            may_deal = isinstance(command, SeatAction) and command.may_deal
            secret = await self._deal_secret(loaded.record) if may_deal else b""
            basis = Basis(loaded.record, loaded.now_ms, self._chance, overdue_revision, deal_secret=secret)
            await self._check_room(command, loaded.record)
            decision = await self._decide_in_steps(command.decide, basis, runner)
            await self.check_cost(command, basis, decision)
            with contextlib.suppress(Overtaken):
                return await self.commit(command, answer, basis, decision)
        raise StaleState(revision)

    async def _try_cached(self, command: GameCommand, answer: Answer) -> bytes:
        basis = self.cached_basis(command.game_id)
        if basis is not None:
            with contextlib.suppress(Overtaken):
                encoded = await self._commit_cached(command, answer, basis)
                self._on_cached(True)  # noqa: FBT003 - a callback has no names
                return encoded
        self._on_cached(False)  # noqa: FBT003 - as above
        return await self._try_change(command, answer)

    def cached_basis(self, game_id: str) -> Basis | None:
        """Returns a cached game to decide on.

        None if a load must come first: the game is not cached, something is due in it, or its rules may search, which
        should not be done in vain.
        """
        cached = self._store.games.cached(game_id)
        if cached is None or cached.record is None:
            return None
        record, now_ms = cached.record, cached.now_ms
        if may_search(record.game):
            return None
        at_ms, until_ms = due_ms(record.game), now_ms + CACHED_MS
        if at_ms is not None:
            if at_ms <= now_ms:
                return None
            until_ms = min(until_ms, at_ms)
        return Basis(record, now_ms, self._chance, until_ms=until_ms)

    async def _commit_cached(self, command: GameCommand, answer: Answer, basis: Basis) -> bytes:
        """Decides on a cached game and commits; the commit checks that the game is unchanged.

        Raises Overtaken for every refusal too, because no answer may be based on possibly stale cached state.
        """
        try:
            await self._check_room(command, basis.record)
            decision = command.decide(basis)
            await self.check_cost(command, basis, decision)
        except Fault:
            raise Overtaken from None
        return await self.commit(command, answer, basis, decision)

    async def _decide_in_steps(
        self, decide: Callable[[Basis], Decision], basis: Basis, runner: OffLoopRunner | None = None
    ) -> Decision:
        """Returns a decision to store. If it searched other racks, its time is rounded up to hide the result."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        decision = await self.decide(decide, basis, runner)
        if may_have_searched_all_racks(decision.applied):
            await asyncio.sleep(SEARCH_STEP_SECONDS - (loop.time() - began) % SEARCH_STEP_SECONDS)
        return decision

    async def _settle(self, game_id: str, request_key: str, caller: Caller | None = None) -> tuple[Loaded, int | None]:
        """Loads a game and applies what is due in it. Of concurrent calls only one applies it (R55).

        Raises GameNotFound, before it applies anything, for a caller with another key than the game's.

        Returns:
            The game after that, and the revision before the time-out if this call found a turn overdue.
        """
        loaded = await self._store.games.load(game_id, request_key)
        record = loaded.record
        if record and caller:
            check_key(record, caller)
        if loaded.memo or record is None or not is_due(record.game, loaded.now_ms):
            self._notify_of_forgotten_bots(loaded)
            return loaded, None
        secret = b"" if isinstance(record.game.phase, Playing) else await self._deal_secret(record)
        basis, draft = (
            Basis(record, loaded.now_ms, self._chance, deal_secret=secret),
            await self._store.drafts.latest(game_id),
        )
        decision = await self._decide_in_steps(lambda due: decide_due(due, draft), basis)
        after, change = self.after(basis, decision, TIME)
        await self._store_change(record, Commit(record.etag, after, change))
        overdue_revision = record.game.revision if isinstance(record.game.phase, Playing) else None
        return await self._store.games.load(game_id, request_key), overdue_revision

    async def _deal_secret(self, record: Record) -> bytes:
        """Returns the secret of a game's deals; empty for a game without fair deals (fair_deal)."""
        return deal_secret(await self._store.secret(), record.deal_nonce) if record.deal_nonce else b""

    async def _with_new_code(self, record: Record, decision: Decision) -> Decision:
        """Returns a decision, with a new join code for the lobby if it removes a person."""
        if not (_kicked_person(record, decision) and record.listing.join_code):
            return decision
        code = await reserve_code(self._store, record.game_id, decision.applied.game.revision)
        events = tuple(
            replace(event, join_code=code) if isinstance(event, PlayerKicked) else event
            for event in decision.applied.events
        )
        return replace(decision, applied=replace(decision.applied, events=events))

    def after(self, basis: Basis, decision: Decision, cause: Cause) -> tuple[Record, bytes]:
        """Returns the record after a change, and the change's stored bytes, which its etag hashes."""
        before, game = basis.record, decision.applied.game
        nonce = self._chance.token_bytes(NONCE_BYTES)
        change = encode_change(game.revision, basis.now_ms, nonce, decision.applied.events, cause)
        etag = lineage(before.etag, change)
        after = replace(before, game=game, etag=etag, tokens=decision.tokens, updated_ms=basis.now_ms)
        if isinstance(before.game.phase, Lobby):
            after = _with_lobby(after, before, decision)
        elif decision.new_seat:
            after = replace(after, operator_data=_operator_after(before.operator_data, decision))
        return after, change

    async def _check_room(self, command: Command, record: Record) -> None:
        """Raises StoreFull for a change of a long game if the store's room is reserved for the growth of small ones."""
        if command.is_limited and record.game.revision > SMALL_REVISIONS:
            await self._store.check_room(ROOM_SECONDS)

    async def check_cost(self, command: Command, basis: Basis, decision: Decision) -> None:
        """Raises Overloaded if a person's seat makes too many changes that cost nothing, StoreFull as `_check_room`."""
        if not _is_paced(command, decision):
            return
        await self._store.check_room(ROOM_SECONDS)
        paced = _paced_seat(basis.record.game, decision)
        if paced is not None:
            self._pace.check(basis.record.game_id, paced, basis.now_ms)

    async def commit(self, command: Command, answer: Answer, basis: Basis, decision: Decision) -> bytes:
        """Stores a decision and the answer to its request, and returns the answer. Raises Overtaken on a conflict.

        Of a decision that changes nothing, only the answer is stored.
        """
        before, is_change = basis.record, bool(decision.applied.events)
        is_of_lobby = isinstance(before.game.phase, Lobby)
        if is_of_lobby:
            decision = await self._with_new_code(before, decision)
        cause = _cause(command, before.game, decision)
        after, change = self.after(basis, decision, cause) if is_change else (before, b"")
        encoded, request_key = answer.encode(decision, after), command.request.key
        memo = Memo(command.request.fingerprint, encoded, decision.salt)
        if decision.ticket is not None:
            await self._use_up(decision.ticket, request_key or self._chance.token_bytes(NONCE_BYTES).hex())
        commit = Commit(
            before.etag,
            after,
            change,
            request_key,
            memo if request_key else None,
            sender="" if decision.actor is None else str(decision.actor),
            vacated=_vacated(decision.applied) if is_of_lobby or decision.new_seat else 0,
            until_ms=basis.until_ms,
        )
        outcome = await (self._store_change(before, commit) if is_change else self._store.games.commit(commit))
        if isinstance(outcome, Committed):
            if decision.actor and _is_of_person(after.game, decision.actor):
                self._on_change(after.game_id, decision.actor)
            return _complete(answer, encoded, decision.salt, command) if decision.salt else encoded
        paced = _paced_seat(before.game, decision) if _is_paced(command, decision) else None
        if paced is not None:
            self._pace.give_back(before.game_id, paced)
        if isinstance(outcome, Memo):
            return replay(outcome, command, answer)
        raise Overtaken

    async def _use_up(self, ticket: JoinTicket, user: str) -> None:
        """Makes a ticket void for all others. Raises TicketUsed.

        This precedes the commit, so no two calls join with one ticket; a repeated request is the same user. If a
        change of others comes between, and the next decision refuses the player, a ticket is lost.
        """
        if await self._store.names.point(f"ticket:{ticket.digest}", user, kept_ms=TICKET_MS_MAX) != user:
            raise TicketUsed

    async def _store_change(self, before: Record, commit: Commit) -> Outcome:
        """Commits a change and reports bot turns, also if it is unknown whether the change is stored."""
        after = commit.record
        phase, bots = after.game.phase, bots_to_act(after.game)
        is_moved, is_in_lobby = type(phase) is not type(before.game.phase), isinstance(phase, Lobby)
        stays_in_lobby = is_in_lobby and before.etag != NO_ETAG
        begins = (is_moved and not after.state.is_over) or (is_in_lobby and due_ms(after.game) is not None)
        if begins or bots:
            await self._arm(before, after)
        if stays_in_lobby and after.listing.join_code:  # the code must not expire before the game
            await self._store.names.point(code_name(after.listing.join_code), after.game_id)
        if self._is_archived and after.has_record:
            commit = await self._announced(commit)
        try:
            outcome = await self._store.games.commit(commit)
        except (StoreUnavailable, asyncio.CancelledError):
            if bots:
                self._on_bot_turn(after)
            raise
        if isinstance(outcome, Committed):
            if bots:
                self._on_bot_turn(after)
            if is_moved or stays_in_lobby:
                await self._update_lists(after, stays_in_lobby=stays_in_lobby)
            is_other = after.operator_data is not before.operator_data
            if after.operator_data.player_refs and (is_moved or is_in_lobby or is_other):
                await self.note_players(after)
        return outcome

    async def _announced(self, commit: Commit) -> Commit:
        """Names a finished game in the outbox; returns its commit, which expires before the entry can be dropped."""
        until_ms = await self._store.outbox.append(commit.record.game_id) + OUTBOX_VALID_MS
        return replace(commit, until_ms=until_ms if commit.until_ms is None else min(commit.until_ms, until_ms))

    def _notify_of_bot_turn(self, record: Record) -> None:
        if bots_to_act(record.game):
            self._on_bot_turn(record)

    def _notify_of_forgotten_bots(self, loaded: Loaded) -> None:
        """Reports a bot turn again if it is long due: the server that was to play the bot may have died."""
        record = loaded.record
        if record and loaded.now_ms - record.updated_ms >= self._bot_wait_ms + record.game.settings.bot_pause_ms:
            self._notify_of_bot_turn(record)

    async def _arm(self, before: Record, after: Record) -> None:
        """Schedules the sweeper's look at a game before a round starts or ends, a bot acts, or a start is set.

        No turn of a round can be due before the sweeper's next look (earliest_due_ms), so no turn writes its deadline.
        The next round may be due before the last turn of this one would have been. A bot's turn is written because it
        may have no deadline, and the sweeper must find it if this server dies.
        """
        looks = (earliest_due_ms(before.game, after.updated_ms), self.next_look(Loaded(after.updated_ms, after, None)))
        known = [at_ms for at_ms in looks if at_ms is not None]
        if known:
            await self._store.deadlines.arm(after.game_id, min(known))

    async def note_players(self, record: Record) -> None:
        """Makes the references of a game's people find it. Only tickets can ask for games, so only games of keys count.

        A failure is ignored: the change is stored, and the next round notes them again.
        """
        if record.listing.key:
            with contextlib.suppress(StoreUnavailable):
                await self._store.lists.note_players(record)
                for ref in record.operator_data.player_refs:
                    await self._store.streams.notify(inbox_of(record.listing.key, ref.text))

    async def _update_lists(self, after: Record, *, stays_in_lobby: bool) -> None:
        """Puts a game into its new lists. A failure is ignored: the change is stored, and reading repairs lists.

        In the lobby, another server may have listed a later change before: then that one is listed again, because
        nothing repairs a game that is in no list.
        """
        with contextlib.suppress(StoreUnavailable, StoredFormatUnknown):
            await self._store.lists.index(after)
            if stays_in_lobby:
                current = (await self._store.games.load(after.game_id)).record
                if current and current.etag != after.etag:
                    await self._store.lists.index(current)


def _cause(command: Command, before: Game, decision: Decision) -> Cause:
    """Returns who caused a change by a command."""
    actor = decision.actor
    if actor == HOST:
        return Cause(CauseKind.HOST)
    if actor is not None:
        is_bot = command.request.caller.stands_in or any(one.seat == actor and one.bot for one in before.players)
        return Cause(CauseKind.BOT if is_bot else CauseKind.PLAYER, actor)
    if decision.new_seat:
        return Cause(CauseKind.PLAYER, decision.new_seat)
    return Cause(CauseKind.HOST if decision.applied.game.revision == 1 else CauseKind.ADMIN)


async def reserve_code(store: Store, game_id: str, revision: int = 0) -> str:
    """Returns a join code for a game, which no other game in the lobby has (join_codes)."""
    for code in join_codes(await store.secret(), game_id, revision):
        if await store.names.point(code_name(code), game_id) == game_id:
            break
    return code


def _with_lobby(after: Record, before: Record, decision: Decision) -> Record:
    """Returns the record after a change of a lobby, with what only a lobby has."""
    reserved = {one.seat for one in after.game.reserved}
    invited = {token.seat: token for token in (*before.invited, *decision.tokens)}
    return replace(
        after,
        tokens=tuple(token for token in decision.tokens if token.seat not in reserved),
        listing=listing_after(before.listing, decision.applied.events),
        is_emptied=_is_emptied(before, decision.applied),
        operator_data=_operator_after(before.operator_data, decision),
        kicked=_kicked_after(before, decision),
        invited=tuple(token for token in invited.values() if token.seat in reserved),
        position=before.position if isinstance(after.game.phase, Lobby) else None,
    )


def _kicked_person(before: Record, decision: Decision) -> Kicked | None:
    """Returns the person whom somebody else removes from the lobby; None if a change removes none, or a bot."""
    seat = next((event.seat for event in decision.applied.events if isinstance(event, PlayerKicked)), None)
    by_host = decision.actor is not None
    people = {one.seat: one.name for one in before.game.reserved}
    people |= {one.seat: one.name for one in before.game.players if not one.bot and not (by_host and one.is_host)}
    return Kicked(people[seat], before.operator_data.ref_of(seat)) if seat in people else None


def _kicked_after(before: Record, decision: Decision) -> tuple[Kicked, ...]:
    """Returns who was kicked from a lobby after a change."""
    if not isinstance(decision.applied.game.phase, Lobby):
        return ()
    kicked = _kicked_person(before, decision)
    return (*before.kicked, kicked)[-KICKED_MAX:] if kicked else before.kicked


def _operator_after(before: OperatorData, decision: Decision) -> OperatorData:
    """Returns what only the operator sees of a game after a change."""
    after = before
    for event in decision.applied.events if before.player_refs else ():
        if isinstance(event, PlayerLeft | PlayerKicked | SeatTakenOver):
            after = after.left(event.seat)
    if decision.player_ref:
        revision = decision.applied.game.revision
        return after.joined(PlayerRef(revision, decision.new_seat, decision.player_ref))
    return after


def replay(memo: Memo, command: Command, answer: Answer) -> bytes:
    """Returns the first answer again. Raises DuplicateRequest if the content differs."""
    if memo.fingerprint != command.request.fingerprint:
        raise DuplicateRequest
    return _complete(answer, memo.answer, memo.salt, command)


def _complete(answer: Answer, encoded: bytes, salt: bytes, command: Command) -> bytes:
    """Returns the answer to send, given the stored one and its salt."""
    return answer.add_token(encoded, seat_token(salt, command.request.request_id)) if salt else encoded


def _is_emptied(before: Record, applied: Applied) -> bool:
    """Returns whether all people have left the lobby: not before the first has come, nor if the host stays seatless."""
    after = applied.game
    if not isinstance(after.phase, Lobby) or _has_people(after):
        return False
    was_cleared = before.game.host_seat is None and isinstance(applied.events[0], PlayerKicked)
    return before.is_emptied or (_has_people(before.game) and not was_cleared)


def _vacated(applied: Applied) -> int:
    """Returns the seat that a person has no more after a change; 0 if there is none."""
    vacating = PlayerLeft | PlayerKicked | SeatTakenOver
    return next((event.seat for event in applied.events if isinstance(event, vacating)), 0)


def _is_of_person(game: Game, seat: int) -> bool:
    """Returns whether a person who is present has a seat."""
    for player in game.players:
        if player.seat == seat:
            return not (player.bot or player.stand_in)
    return False


def _is_of_bot(game: Game, seat: int | None) -> bool:
    """Returns whether a bot plays a seat, as a player or for an absent person."""
    return any(player.seat == seat and player.played_by for player in game.players)


def _is_paced(command: Command, decision: Decision) -> bool:
    """Returns whether a change is limited because it costs its sender nothing."""
    return command.is_limited and costs_nothing(decision.applied)


def _paced_seat(game: Game, decision: Decision) -> int | None:
    """Returns the seat that a change without a cost is counted for (ChangePace); None: it is not counted."""
    if _is_of_bot(game, decision.actor):
        return None
    if decision.actor is None and decision.new_seat and not isinstance(game.phase, Lobby):
        return decision.new_seat
    is_reissued = any(isinstance(event, SeatTokenRenewed) for event in decision.applied.events)
    return REISSUES if is_reissued and decision.actor is None else decision.actor


def _has_people(game: Game) -> bool:
    return bool(game.reserved) or any(player.bot is None for player in game.players)
