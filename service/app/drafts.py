"""Saving drafts: the tables that players arrange during their turns. A draft is stored beside its game."""

from dataclasses import dataclass, replace

from engine.game import Game
from engine.melding.drafts import Draft
from engine.melding.grid.cells import Grid, without_faces
from engine.melding.melds import ProposedMeld
from engine.melding.round import MeldingRound
from engine.melding.table import ProposedTable
from engine.melding.turns import arrange
from engine.violations import Refused
from service.app.changes import ATTEMPTS, ChangeLoop
from service.app.commands.command import Basis
from service.app.commands.turns import check_state
from service.app.history import OffLoopRunner
from service.app.identity import Caller, player_seat_in
from service.errors import ActionRefused, Fault, StaleState
from service.runtime.slow_calls import in_one_step
from service.storage.store import Store


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """A draft to save: revision and etag that its player saw, and the table; None for the table at the turn's start."""

    game_id: str
    revision: int
    etag: str
    table: ProposedTable | None


class Drafts:
    """Saves drafts.

    Args:
        store: The store.
        changes: Loads games.
    """

    def __init__(self, store: Store, changes: ChangeLoop) -> None:
        self._store = store
        self._changes = changes

    async def save(self, request: DraftRequest, caller: Caller, runner: OffLoopRunner | None = None) -> Draft:
        """Saves a draft of the caller's turn and returns it with its number.

        It takes one round trip if the game is cached, because the store refuses a draft of a game that has changed.

        Args:
            request: The draft.
            caller: The player.
            runner: Judges the draft off the event loop; for one that may take long.
        """
        saved, revision = await self._save_on_cached(request, caller, runner), 0
        for _ in range(ATTEMPTS):
            if saved is not None:
                return saved
            basis = await self._changes.basis(request.game_id, caller)
            revision = basis.record.game.revision
            saved = await self._store_draft(basis, await _checked(request, caller, basis, runner))
        raise StaleState(revision)

    async def _save_on_cached(
        self, request: DraftRequest, caller: Caller, runner: OffLoopRunner | None
    ) -> Draft | None:
        """Returns the saved draft; None if the game must be loaded first, also before any refusal."""
        basis = self._changes.cached_basis(request.game_id)
        if basis is None:
            return None
        try:
            draft = await _checked(request, caller, basis, runner)
        except Fault:
            return None
        return await self._store_draft(basis, draft)

    async def _store_draft(self, basis: Basis, draft: Draft) -> Draft | None:
        number = await self._store.drafts.save(basis.record, draft)
        return None if number is None else replace(draft, number=number)


async def _checked(request: DraftRequest, caller: Caller, basis: Basis, runner: OffLoopRunner | None) -> Draft:
    """Returns the draft of a request. Raises a Fault if it is refused."""

    def check() -> Draft:
        seat, game = player_seat_in(basis.record, caller), basis.record.game
        check_state(request, basis)
        table = _table_to_send(game) if request.table is None else request.table
        draft = arrange(game, seat, table, basis.now_ms)
        if isinstance(draft, Refused):
            raise ActionRefused(draft)
        return draft

    if runner is None:
        return check()
    checked: Draft = await runner.run(in_one_step(lambda _: check(), b""))
    return checked


def _table_to_send(game: Game) -> ProposedTable:
    """Returns the table at the turn's start in the form that a player sends."""
    table = game.round.table if isinstance(game.round, MeldingRound) else ()
    return (
        without_faces(table) if isinstance(table, Grid) else tuple(ProposedMeld(one.tiles, one.kind) for one in table)
    )
