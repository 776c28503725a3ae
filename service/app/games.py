"""The use cases of games: changes by commands, and reads."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from engine.melding.drafts import Draft
from engine.melding.ruleset import RacksShown
from engine.record import GameRecord
from engine.seats import BotLevel
from engine.views import is_open_to_spectators, sees_drafts
from engine.violations import Refused
from service.app.changes import BOT_WAIT_MS, ChangeLoop
from service.app.commands import (
    AddBot,
    CreateGame,
    GameEncoder,
    GamePlan,
    JoinGame,
    JoinOrCreateGame,
    LeaveGame,
    PlayTurn,
    Redeal,
    RequestIdentity,
    ResignGame,
    Return,
    SeatEncoder,
    StartAnotherRound,
    StartFirstRound,
    TokenAdder,
    TurnEncoder,
    TurnRequest,
    Vote,
    VoteOnPlay,
)
from service.app.drafts import DraftRequest, Drafts
from service.app.game_lists import GameFilter, list_games
from service.app.history import History, OffLoopRunner, exported, record_at
from service.app.identity import Caller, Chance, player_seat_in, viewer_in
from service.app.lobby_commands import (
    AbortTheGame,
    KickFromLobby,
    OpenRematch,
    ReissueToken,
    RematchExists,
    RematchMissing,
    RenewToken,
    SetReadiness,
)
from service.app.presence import Presence, presence_in
from service.app.quick_play import QuickPlay
from service.app.views import (
    ChangeView,
    GameSnapshotView,
    SeatPresence,
    change_view,
    committed_view,
    snapshot_view,
    turn_result,
)
from service.archive.reader import ArchiveReader
from service.errors import (
    ActionRefused,
    GameNotFound,
    GameNotOver,
    HistoryUnavailable,
    JoinCodeUnknown,
    RecordHidden,
)
from service.model.change import Loaded
from service.model.record import Record, code_name
from service.storage.store import Store


class Games:
    """The use cases of games in a store. Methods that change a game return the encoded answer.

    Args:
        store: The store.
        chance: The source of randomness.
        bot_wait_ms: How long after a change a bot that has not acted counts as forgotten.
        archive: Has finished games that the store no longer has; None: finished games are not archived.

    Attributes:
        presence: Has the callers with a seat marked as seen.
    """

    def __init__(
        self,
        store: Store,
        chance: Chance,
        bot_wait_ms: int = BOT_WAIT_MS,
        archive: ArchiveReader | None = None,
    ) -> None:
        self._store = store
        self._chance = chance
        self.presence = Presence(store)
        self._archive = archive
        self._changes = ChangeLoop(store, chance, bot_wait_ms, self.presence.seen, is_archived=archive is not None)
        self._quick_play = QuickPlay(store, chance, self._changes)
        self._drafts = Drafts(store, self._changes)

    @property
    def changes(self) -> ChangeLoop:
        """The change loop, for use cases of the operator."""
        return self._changes

    @property
    def chance(self) -> Chance:
        """The source of randomness, for use cases of the operator."""
        return self._chance

    def on_bot_turn(self, callback: Callable[[Record], None]) -> None:
        """Sets a callback for games in which a bot is to act: after each change, and when the bot seems forgotten."""
        self._changes.on_bot_turn(callback)

    def on_cached(self, callback: Callable[[bool], None]) -> None:
        """Sets a callback for turns that could be decided on a cached game: whether they were."""
        self._changes.on_cached(callback)

    def next_look(self, loaded: Loaded) -> int | None:
        """Returns when to look at an idle game (ChangeLoop.next_look)."""
        return self._changes.next_look(loaded)

    async def load(self, game_id: str) -> Loaded:
        """Returns a game for readers (ChangeLoop.load)."""
        return await self._changes.load(game_id)

    async def settle(self, game_id: str) -> Loaded:
        """Returns a game after what was due in it (ChangeLoop.settle)."""
        return await self._changes.settle(game_id)

    async def create_game(
        self, plan: GamePlan, request: RequestIdentity, encode: GameEncoder, add_token: TokenAdder
    ) -> bytes:
        """Creates a game."""
        return await self._changes.create(CreateGame(request, plan, self._chance, encode, add_token))

    async def join_or_create_game(self, command: JoinOrCreateGame) -> bytes:
        """Seats a player in an open public game like the plan, or creates one."""
        return await self._quick_play.join_or_create(command)

    async def game_of_code(self, join_code: str, key: str) -> str:
        """Returns the id of the game of a key that has or had a join code. Raises JoinCodeUnknown.

        Joining refuses a code that the game no longer has, unless it repeats a request from before.
        """
        game_id = await self._store.names.find(code_name(join_code))
        record = (await self._store.games.load(game_id)).record if game_id else None
        if record is None or record.listing.key != key:
            raise JoinCodeUnknown
        return game_id

    async def join_game(  # noqa: PLR0913, PLR0917 - made in one place
        self,
        game_id: str,
        name: str,
        player_ref: str,
        join_code: str,
        seat: int,
        request: RequestIdentity,
        encode: SeatEncoder,
        add_token: TokenAdder,
    ) -> bytes:
        """Seats a player (JoinGame)."""
        join = JoinGame(request, game_id, name, player_ref, join_code, seat, self._chance, encode, add_token)
        return await self._changes.run(join)

    async def add_bot(  # noqa: PLR0913, PLR0917 - made in one place
        self, game_id: str, level: BotLevel, name: str, seat: int, request: RequestIdentity, encode: SeatEncoder
    ) -> bytes:
        """Seats a bot; an empty name stands for an unused one, seat 0 for the lowest free one."""
        return await self._changes.run(AddBot(request, game_id, level, name, seat, self._chance, encode))

    async def leave_game(self, game_id: str, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Frees the caller's seat in the lobby and revokes its token."""
        return await self._changes.run(LeaveGame(request, game_id, encode))

    async def kick_player(self, game_id: str, seat: int, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Removes a player from the lobby."""
        return await self._changes.run(KickFromLobby(request, game_id, encode, seat))

    async def set_ready(self, game_id: str, is_ready: bool, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Stores whether the caller is ready to start."""
        return await self._changes.run(SetReadiness(request, game_id, encode, is_ready))

    async def renew_seat_token(
        self, game_id: str, request: RequestIdentity, encode: GameEncoder, add_token: TokenAdder
    ) -> bytes:
        """Replaces the caller's token by a new one."""
        return await self._changes.run(RenewToken(request, game_id, encode, self._chance, add_token))

    async def reissue_seat_token(
        self, game_id: str, seat: int, request: RequestIdentity, encode: GameEncoder, add_token: TokenAdder
    ) -> bytes:
        """Replaces the token of a seat by a new one, for a caller with that right."""
        return await self._changes.run(ReissueToken(request, game_id, encode, seat, self._chance, add_token))

    async def abort_game(self, game_id: str, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Aborts a game, or votes for that."""
        return await self._changes.run(AbortTheGame(request, game_id, encode))

    async def create_rematch(
        self,
        game_id: str,
        request: RequestIdentity,
        encode: GameEncoder,
        creating: Callable[[str], AbstractContextManager[None]],
    ) -> bytes:
        """Creates the rematch of a game that is over, then announces it there.

        The rematch's id follows from the game's. So a call that finds the first step done, by another call or before a
        server died, continues with the second. `creating` is as in JoinOrCreateGame.
        """
        rematch = OpenRematch(request, game_id, encode, await self._changes.rematch_game_id(game_id))
        try:
            return await self._changes.run(rematch)
        except RematchMissing as missing:
            with creating(rematch.new_game_id):
                await self._changes.create_rematch(rematch.new_game_id, missing.record)
        try:
            return await self._changes.run(replace(rematch, is_created=True))
        except RematchExists:
            return encode(await self.get_game(game_id, request.caller))

    async def start_game(self, game_id: str, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Starts the first round."""
        return await self._changes.run(StartFirstRound(request, game_id, encode, self._chance))

    async def start_next_round(self, game_id: str, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Starts the next round."""
        return await self._changes.run(StartAnotherRound(request, game_id, encode, self._chance))

    async def request_redeal(self, game_id: str, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Deals the round again."""
        return await self._changes.run(Redeal(request, game_id, encode, self._chance))

    async def resign_game(self, game_id: str, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Gives up the game."""
        return await self._changes.run(ResignGame(request, game_id, encode))

    async def return_to_seat(self, game_id: str, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Ends the caller's absence."""
        return await self._changes.run(Return(request, game_id, encode))

    async def claim_error(self, vote: Vote, request: RequestIdentity, encode: GameEncoder) -> bytes:
        """Votes on a play that is shown."""
        return await self._changes.run(VoteOnPlay(request, vote.game_id, encode, vote))

    async def save_draft(self, draft: DraftRequest, caller: Caller, runner: OffLoopRunner | None = None) -> Draft:
        """Saves the table that a player is arranging (Drafts.save)."""
        saved = await self._drafts.save(draft, caller, runner)
        self.presence.seen(draft.game_id, saved.seat)
        return saved

    async def play_turn(
        self, turn: TurnRequest, request: RequestIdentity, encode: TurnEncoder, runner: OffLoopRunner | None = None
    ) -> bytes:
        """Takes a turn at the revision that the player saw, or only validates it (validate_only).

        Args:
            turn: The turn.
            request: Identifies the request.
            encode: Encodes the answer.
            runner: Judges the turn off the event loop; for one that may take long.
        """
        command = PlayTurn(request, turn.game_id, turn, encode)
        if turn.validate_only:
            return await self._validate_turn(command, runner)
        if runner is None:
            return await self._changes.run_cached(command)
        return await self._changes.run(command, runner)

    async def _validate_turn(self, command: PlayTurn, runner: OffLoopRunner | None) -> bytes:
        """Returns the answer to a turn without storing it. Raises ActionRefused for any violation."""
        basis = await self._changes.basis(command.game_id, command.request.caller)
        seat = player_seat_in(basis.record, command.request.caller)
        self.presence.seen(command.game_id, seat)
        view = snapshot_view(basis.record, seat, basis.now_ms)
        applied = (await self._changes.decide(command.decide, basis, runner)).applied
        if applied.violations:
            raise ActionRefused(Refused(applied.violations))
        return command.encode_turn(replace(turn_result(view, applied), tiles_drawn=()))

    async def get_game(self, game_id: str, caller: Caller) -> GameSnapshotView:
        """Returns the caller's view of a game, with draft and presence."""
        loaded, presence = await self.load_with_presence(game_id, caller)
        if loaded.record is None:
            return await self._archived_game(game_id, caller)
        record, viewer = self._record_for(loaded, caller)
        draft = await self._store.drafts.latest(game_id) if sees_drafts(record.game, viewer) else None
        return snapshot_view(record, viewer, loaded.now_ms, draft, presence)

    async def _archived_game(self, game_id: str, caller: Caller) -> GameSnapshotView:
        loaded, _ = await self._load_with_history(game_id, caller)
        record, viewer = self._record_for(loaded, caller)
        return snapshot_view(record, viewer, loaded.now_ms)

    async def game_at(self, game_id: str, caller: Caller, revision: int, runner: OffLoopRunner) -> GameSnapshotView:
        """Returns the caller's view of a game at a revision, without draft and presence. Raises HistoryUnavailable."""
        loaded, history = await self._load_with_history(game_id, caller)
        record, viewer = self._record_for(loaded, caller)
        return snapshot_view(await record_at(history, record, revision, runner), viewer, loaded.now_ms)

    async def _load_with_history(self, game_id: str, caller: Caller) -> tuple[Loaded, History]:
        """Returns a game for readers of its history, and the history: from the store, else from the archive."""
        loaded = await self._changes.load(game_id, caller)
        if loaded.record is None and self._archive:
            archived = await self._archive.read(game_id)
            if archived:
                return replace(loaded, record=archived.record), archived
        return loaded, self._store.streams

    async def export_game(self, game_id: str, caller: Caller, runner: OffLoopRunner) -> GameRecord:
        """Returns the record of a game that has ended. Raises GameNotOver, RecordHidden, HistoryUnavailable."""
        loaded, history = await self._load_with_history(game_id, caller)
        record, _ = self._record_for(loaded, caller)
        if not record.has_record:
            raise GameNotOver
        if record.game.ruleset.racks_shown is RacksShown.HIDDEN:
            raise RecordHidden
        return await exported(history, record, runner)

    async def load_with_presence(
        self, game_id: str, caller: Caller | None = None
    ) -> tuple[Loaded, Mapping[int, SeatPresence] | None]:
        """Returns a game for readers (ChangeLoop.load), and the presence of its players, read together."""
        loaded, seen = await asyncio.gather(self._changes.load(game_id, caller), self.presence.read(game_id))
        return loaded, presence_in(loaded, seen)

    def _record_for(self, loaded: Loaded, caller: Caller) -> tuple[Record, int | None]:
        """Returns a loaded game, and whose view the caller gets. Raises GameNotFound."""
        if loaded.record is None:
            raise GameNotFound
        viewer = viewer_in(loaded.record, caller)
        self.presence.seen(loaded.record.game_id, viewer)
        return loaded.record, viewer

    async def list_games(self, wanted: GameFilter, cursor: str, limit: int) -> tuple[tuple[GameSnapshotView, ...], str]:
        """Returns a spectator's views of public games, newest first, and the next cursor.

        A page omits games that show nothing to spectators.
        """
        records, following = await list_games(self._store, wanted, cursor, limit)
        return tuple(
            committed_view(record, None) for record in records if is_open_to_spectators(record.game)
        ), following

    async def list_changes(
        self, game_id: str, caller: Caller, after_revision: int, limit: int
    ) -> tuple[tuple[ChangeView, ...], int]:
        """Returns a game's changes after a revision (0: the oldest kept), and the revision to go on after; 0: the end.

        Raises HistoryUnavailable if the game has not had the revision, or the changes after it are no longer kept.
        """
        loaded, history = await self._load_with_history(game_id, caller)
        _, viewer = self._record_for(loaded, caller)
        entries = await history.entries(game_id, after_revision + 1, limit + 1)
        if after_revision and (not entries or entries[0].revision != after_revision + 1):
            oldest, newest = await history.bounds(game_id)
            if entries or not oldest - 1 <= after_revision <= newest:
                raise HistoryUnavailable(oldest, newest)
        following = entries[limit - 1].revision if len(entries) > limit else 0
        return tuple(change_view(entry, viewer) for entry in entries[:limit]), following
