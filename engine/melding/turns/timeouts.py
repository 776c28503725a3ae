"""The decision on a turn whose deadline has passed (R55, R56, turn_timeout_dirty, turn_timeout_clean)."""

from engine.decisions import TurnOver
from engine.events import TurnTimedOut
from engine.game import Game
from engine.melding.actions import PlayTiles
from engine.melding.events import TilesPlayed
from engine.melding.game import rules_of
from engine.melding.round import Choosing, Drawing, Drawn, MeldingRound
from engine.melding.ruleset import Ruleset, TurnTimeoutClean, TurnTimeoutDirty
from engine.melding.table import ProposedTable, is_same_table
from engine.melding.turns.plays import judged
from engine.melding.turns.settlement import default_river_choice


def time_out(game: Game, round_: MeldingRound, draft: ProposedTable | None) -> TurnOver:
    """Returns the end of a turn whose deadline has passed: table and rack are restored unless the draft is committed.

    `draft` is the last one of the turn; None if the player saved none.
    """
    seat, ruleset = round_.turn.seat, rules_of(game)
    match round_.step:
        case Choosing():
            return TurnOver((TurnTimedOut(seat, ()), *default_river_choice(round_)))
        case Drawn() | Drawing() if _is_clean(round_, draft):
            return TurnOver((TurnTimedOut(seat, ()),))
        case _:
            tiles = round_.pool[: _timeout_tiles(round_, draft, ruleset)]
            committed = _committed(round_, draft, ruleset)
            return TurnOver((TurnTimedOut(seat, ()), committed) if committed else (TurnTimedOut(seat, tiles),))


def _is_clean(round_: MeldingRound, draft: ProposedTable | None) -> bool:
    """Returns whether the table was left as it was: no draft differs from it, and no illegal play was shown."""
    if round_.shown_play is not None:
        return False
    return draft is None or is_same_table(draft, round_.table)


def _timeout_tiles(round_: MeldingRound, draft: ProposedTable | None, ruleset: Ruleset) -> int:
    """Returns how many tiles the player draws for the time-out."""
    if not _is_clean(round_, draft):
        one = ruleset.turn_timeout_dirty is TurnTimeoutDirty.REVERT_AND_DRAW_ONE
        return 1 if one else ruleset.penalty_tiles
    match ruleset.turn_timeout_clean:
        case TurnTimeoutClean.DRAW_ONE:
            return 1
        case TurnTimeoutClean.DRAW_PENALTY:
            return ruleset.penalty_tiles
        case TurnTimeoutClean.PASS:
            return 0


def _committed(round_: MeldingRound, draft: ProposedTable | None, ruleset: Ruleset) -> TilesPlayed | None:
    """Returns the draft as a play if it is legal and the ruleset commits legal drafts, else None."""
    commits = ruleset.turn_timeout_dirty is TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT
    if draft is None or not commits:
        return None
    outcome = judged(round_, PlayTiles(round_.turn.seat, draft), ruleset)
    return outcome if isinstance(outcome, TilesPlayed) else None
