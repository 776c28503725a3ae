"""The check of a draft: which tiles it may show, and whether it is a legal play."""

from engine.melding.actions import PlayTiles
from engine.melding.drafts import Draft
from engine.melding.events import TilesPlayed
from engine.melding.play import Play
from engine.melding.round import MeldingRound
from engine.melding.rules import no_tile_is_used_twice, tiles_come_from_the_rack
from engine.melding.ruleset import Ruleset
from engine.melding.table import ProposedTable
from engine.melding.turns.plays import judged
from engine.tiles import in_order
from engine.violations import Reason, Refused, Violation

_SUBJECT = "draft.table"


def check_draft(round_: MeldingRound, seat: int, table: ProposedTable, ruleset: Ruleset) -> Draft | Refused:
    """Returns the draft, or a refusal if it has tiles that are not on the table, the player's rack or the River.

    Tiles of the table may be missing: the player has them in hand.
    """
    rack = round_.rack(seat)
    owned = in_order(rack.tiles + round_.river)
    play = Play(round_.table, table, owned, rack.has_melded, ruleset, _SUBJECT)
    violations = (*_unknown_tiles(play), *no_tile_is_used_twice(play), *tiles_come_from_the_rack(play))
    if violations:
        return Refused(violations)
    outcome = judged(round_, PlayTiles(seat, table), ruleset)
    return Draft(seat, round_.turn.revision, table, isinstance(outcome, TilesPlayed))


def _unknown_tiles(play: Play) -> tuple[Violation, ...]:
    """Returns a violation if the draft has tiles that are not in the game's tile set."""
    unknown = tuple([t for t in in_order(play.added.elements()) if not play.ruleset.copies_of(t)])
    return (Violation(Reason.TILE_UNKNOWN, play.subject, unknown),) if unknown else ()
