"""The operator's use cases: games with everything visible, their end, and statistics."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.actions import AbortGame, Action, KickPlayer, RenewSeatToken, Resign
from engine.game import Game, Lobby
from engine.seats import HOST
from engine.turns import apply
from engine.unions import Draft
from engine.violations import Reason, refused
from service.app.changes import ChangeLoop
from service.app.commands.command import (
    Answer,
    Basis,
    Decision,
    GameCommand,
    RequestIdentity,
    applied_or_refused,
    valid_tokens,
)
from service.app.game_lists import list_games
from service.app.games import Games
from service.app.identity import SPECTATOR
from service.app.views import SeatPresence
from service.errors import ActionRefused, GameNotFound, StoredFormatUnknown
from service.model.record import GameState, Record
from service.operator.archive.eraser import ArchiveEraser
from service.operator.change_feed import ChangeFeed
from service.operator.exporting import Exported, export_player
from service.operator.forgetting import Forgotten, forget_player
from service.storage.store import Store

_NO_REQUEST: Final = RequestIdentity(SPECTATOR, "", b"")
"""The operator's calls have no request id: a repeated one is refused because of the first."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class OperatorFilter:
    """Which games the operator wants: those that have every property that is set.

    Attributes:
        labels: Labels of the game.
        operator_labels: Labels that only the operator sees.
        player_ref: The reference of a person in the game.
        key_name: The name of the key with which the game was created.
    """

    labels: Labels = ()
    operator_labels: Labels = ()
    player_ref: str = ""
    key_name: str = ""

    @property
    def selects(self) -> bool:
        """Whether it excludes any game."""
        return self != OperatorFilter()

    def matches(self, record: Record, *, with_departed: bool = False) -> bool:
        """Returns whether a game has the properties; `with_departed`: also if the person has left it."""
        refs = (ref.text for ref in record.operator_data.player_refs if with_departed or not ref.has_left)
        return (
            set(record.listing.labels).issuperset(self.labels)
            and set(record.operator_data.labels).issuperset(self.operator_labels)
            and (not self.player_ref or self.player_ref in refs)
            and self.key_name in {"", record.listing.key}
        )


@dataclass(frozen=True, slots=True)
class FullView:
    """A game with everything that is hidden from players, and the store's time of the reading."""

    record: Record
    now_ms: int
    presence: Mapping[int, SeatPresence] | None = None
    draft: Draft | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of games and of kept changes, and the store's time."""

    games: Mapping[GameState, int]
    log_entries: int
    log_seconds: int
    now_ms: int


FullEncoder = Callable[[FullView], bytes]
"""Encodes an answer that holds a game with everything visible."""
TokenAdder = Callable[[bytes, str], bytes]
"""Adds a token to an encoded answer, which is stored without it."""


@dataclass(frozen=True, slots=True)
class OperatorCommand(GameCommand):
    """A change of a game by the operator."""

    is_limited = False

    @property
    def key_holder(self) -> None:
        return

    @abstractmethod
    def action(self, game: Game) -> Action:
        """Returns the operator's action. Raises ActionRefused."""

    def decide(self, basis: Basis) -> Decision:
        game = basis.record.game
        applied = applied_or_refused(apply(game, self.action(game), basis.now_ms))
        return Decision(applied, valid_tokens(basis.record, applied))


@dataclass(frozen=True, slots=True)
class AbortByOperator(OperatorCommand):
    """Aborts a game without a vote."""

    def action(self, _game: Game) -> Action:
        return AbortGame(HOST, is_forced=True)


@dataclass(frozen=True, slots=True)
class KickByOperator(OperatorCommand):
    """Removes a player from the lobby, or resigns for a player of a started game."""

    seat: int

    def action(self, game: Game) -> Action:
        if all(player.seat != self.seat for player in game.players):
            raise ActionRefused(refused(Reason.PLAYER_NOT_IN_GAME, seat=self.seat))
        return KickPlayer(HOST, self.seat) if isinstance(game.phase, Lobby) else Resign(self.seat)


@dataclass(frozen=True, slots=True)
class ReissueByOperator(OperatorCommand):
    """Replaces the token of a player who has lost it."""

    seat: int

    def action(self, _game: Game) -> Action:
        return RenewSeatToken(self.seat, is_reissued=True)

    def decide(self, basis: Basis) -> Decision:
        return self.with_new_token(OperatorCommand.decide(self, basis), self.seat, basis.chance)


class Admin:
    """The operator's use cases.

    Args:
        changes: Changes games.
        games: Reads games.
        store: The store.
        archive: The archive; None: finished games are not archived.
    """

    def __init__(self, changes: ChangeLoop, games: Games, store: Store, archive: ArchiveEraser | None = None) -> None:
        self._changes = changes
        self._games = games
        self._store = store
        self._archive = archive

    def feed(self, position: tuple[str, ...] | None, *, from_oldest: bool) -> ChangeFeed:
        """Returns a new reader of all changes."""
        return ChangeFeed(self._store, self._archive, position, from_oldest=from_oldest)

    async def get_game(self, game_id: str) -> FullView:
        """Returns a game with everything visible. Raises GameNotFound."""
        loaded, presence = await self._games.load_with_presence(game_id)
        if loaded.record:
            return FullView(loaded.record, loaded.now_ms, presence, await self._store.drafts.latest(game_id))
        archived = await self._archive.read(game_id) if self._archive else None
        if archived is None:
            raise GameNotFound
        return FullView(archived.record, loaded.now_ms)

    async def list_games(
        self, wanted: OperatorFilter, states: Sequence[GameState], cursor: str, limit: int
    ) -> tuple[tuple[Record, ...], str]:
        """Returns games of some states after a cursor, as app.game_lists does."""
        return await list_games(self._store, states, wanted, cursor, limit)

    async def abort_game(self, game_id: str, encode: FullEncoder) -> bytes:
        """Aborts a game in any state but the last ones. Raises ActionRefused."""
        return await self._changes.run(AbortByOperator(_NO_REQUEST, game_id), _answer(encode))

    async def kick_player(self, game_id: str, seat: int, encode: FullEncoder) -> bytes:
        """Removes a player from the lobby, or resigns for a player of a started game. Raises ActionRefused."""
        return await self._changes.run(KickByOperator(_NO_REQUEST, game_id, seat), _answer(encode))

    async def reissue_seat_token(self, game_id: str, seat: int, encode: FullEncoder, add_token: TokenAdder) -> bytes:
        """Replaces the token of a player by a new one. Raises ActionRefused."""
        answer = replace(_answer(encode), add_token=add_token)
        return await self._changes.run(ReissueByOperator(_NO_REQUEST, game_id, seat), answer)

    async def delete_game(self, game_id: str) -> None:
        """Deletes a game, from the store and the archive. Raises GameNotFound.

        The archive comes first: after that, no server can archive the game, also one that has just read it from the
        store. A call that fails between the two finds the game in the store when it is repeated.
        """
        record = None
        try:
            record = (await self._store.games.load(game_id)).record
            is_found = record is not None
        except StoredFormatUnknown:
            is_found = True
        if self._archive and await self._archive.delete(game_id):
            is_found = True
        if not is_found:
            raise GameNotFound
        await self._store.games.delete(game_id, record)

    def forget_player(self, player_ref: str) -> AsyncIterator[Forgotten]:
        """Removes a person's name and reference from all games, and yields the progress."""
        return forget_player(self._store, self._archive, player_ref)

    def export_player(self, player_ref: str) -> AsyncIterator[Exported]:
        """Yields all that is stored of a person, and the progress."""
        return export_player(self._store, self._archive, player_ref)

    async def statistics(self) -> Statistics:
        """Returns numbers of games and of kept changes."""
        counts, length = await self._store.lists.count(), await self._store.log.length()
        return Statistics(counts, length, self._store.log.kept_ms // 1000, await self._store.now_ms())


def _answer(encode: FullEncoder) -> Answer:
    return Answer(lambda _, after: encode(FullView(after, after.updated_ms)))
