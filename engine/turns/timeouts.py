"""The decision on a turn whose deadline has passed (R55, R56, turn_timeout_dirty, turn_timeout_clean)."""

from collections import Counter
from collections.abc import Iterable

from engine.actions import PlayTiles
from engine.events import PlayerResigned, TilesPlayed, TurnTimedOut
from engine.game import Choosing, Drawn, Game, Round, is_expired, round_of
from engine.melding.melds import Meld, ProposedMeld
from engine.melding.ruleset import Ruleset, TurnTimeoutClean, TurnTimeoutDirty
from engine.melding.table import ProposedTable
from engine.tiles import Tile, in_order
from engine.turns.clocks import resigns_by_clock
from engine.turns.decisions import Context, Decision
from engine.turns.plays import judged
from engine.turns.turn_end import default_river_choice, end_turn


def time_out(game: Game, draft: ProposedTable | None, context: Context) -> Decision:
    """Decides on `TimeOut`. Table and rack are restored unless the draft is committed, and the turn ends.

    Args:
        game: The game.
        draft: The last draft of the turn; None if the player saved none.
        context: The time of the decision.

    Raises:
        ValueError: No deadline has passed.
    """
    if not is_expired(game, context.now_ms):
        raise ValueError("no turn has passed its deadline: apply TimeOut only when is_expired")
    round_ = round_of(game)
    seat = round_.turn.seat
    if resigns_by_clock(game, round_):
        return end_turn(game, (TurnTimedOut(seat, ()), PlayerResigned(seat)), context)
    match round_.step:
        case Choosing():
            return end_turn(game, (TurnTimedOut(seat, ()), *default_river_choice(seat, round_)), context)
        case Drawn() if _is_clean(round_, draft):
            return end_turn(game, (TurnTimedOut(seat, ()),), context)
        case _:
            tiles = round_.pool[: _timeout_tiles(round_, draft, game.ruleset)]
            committed = _committed(round_, draft, game.ruleset)
            events = (TurnTimedOut(seat, ()), committed) if committed else (TurnTimedOut(seat, tiles),)
            return end_turn(game, events, context)


def _is_clean(round_: Round, draft: ProposedTable | None) -> bool:
    """Returns whether the table was left as it was: no draft differs from it, and no illegal play was shown."""
    if round_.shown_play is not None:
        return False
    return draft is None or _tiles_of_melds(draft) == _tiles_of_melds(round_.table)


def _tiles_of_melds(table: Iterable[Meld | ProposedMeld]) -> Counter[tuple[Tile, ...]]:
    return Counter(in_order(meld.tiles) for meld in table if meld.tiles)


def _timeout_tiles(round_: Round, draft: ProposedTable | None, ruleset: Ruleset) -> int:
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


def _committed(round_: Round, draft: ProposedTable | None, ruleset: Ruleset) -> TilesPlayed | None:
    """Returns the draft as a play if it is legal and the ruleset commits legal drafts, else None."""
    commits = ruleset.turn_timeout_dirty is TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT
    if draft is None or not commits:
        return None
    outcome = judged(round_, PlayTiles(round_.turn.seat, draft), ruleset)
    return outcome if isinstance(outcome, TilesPlayed) else None
