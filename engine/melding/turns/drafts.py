"""The check of a draft: which tiles it may show, and whether it is a legal play."""

from engine.melding.actions import PlayTiles
from engine.melding.drafts import Draft
from engine.melding.events import TilesPlayed
from engine.melding.exchange import Exchange
from engine.melding.grid.cells import Grid
from engine.melding.grid.play import GridPlay
from engine.melding.play import Play
from engine.melding.round import MeldingRound
from engine.melding.rules import no_tile_is_used_twice, tiles_are_of_the_game, tiles_come_from_the_rack
from engine.melding.ruleset import Ruleset
from engine.melding.table import ProposedTable, Table, as_grid
from engine.melding.turns.plays import OTHER_LAYOUT, judged
from engine.tiles import Tile, in_order
from engine.violations import Refused

_SUBJECT = "draft.table"


def check_draft(round_: MeldingRound, seat: int, table: ProposedTable, ruleset: Ruleset) -> Draft | Refused:
    """Returns the draft, or a refusal if it has tiles that are not on the table, the player's rack or the River.

    Tiles of the table may be missing: the player has them in hand.
    """
    rack = round_.rack(seat)
    owned = in_order(rack.tiles + round_.river)
    play = _exchange(round_.table, table, owned, rack.has_melded, ruleset)
    if play is None:
        return OTHER_LAYOUT
    violations = (*tiles_are_of_the_game(play), *no_tile_is_used_twice(play), *tiles_come_from_the_rack(play))
    if violations:
        return Refused(violations)
    outcome = judged(round_, PlayTiles(seat, table), ruleset)
    return Draft(seat, round_.turn.revision, table, isinstance(outcome, TilesPlayed))


def _exchange(
    before: Table, after: ProposedTable, owned: tuple[Tile, ...], has_melded: bool, ruleset: Ruleset
) -> Exchange | None:
    """Returns the exchange of tiles from one table to another; None if their layouts differ."""
    if isinstance(before, Grid):
        grid = as_grid(after)
        return None if grid is None else GridPlay(before, grid, owned, has_melded, ruleset, _SUBJECT)
    return None if isinstance(after, Grid) else Play(before, after, owned, has_melded, ruleset, _SUBJECT)
