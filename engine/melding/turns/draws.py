"""Decisions on drawing, on the River choice, and on passing."""

from engine.decisions import Context, Decision, TurnOver
from engine.melding.actions import LayOnRiver
from engine.melding.analysis import Existence
from engine.melding.events import (
    PlayerKnocked,
    RiverTileLaid,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TurnEnded,
    TurnPassed,
)
from engine.melding.round import Choosing, Drawing, Drawn, MeldingRound, Open
from engine.melding.ruleset import (
    DRAWS,
    PoolEmptyPass,
    Ruleset,
    ScoreNeverMelded,
    TurnDraw,
    TurnPlayAfterDraw,
    TurnVoluntaryDraw,
)
from engine.melding.scoring import may_knock, rack_value
from engine.melding.turns.settlement import can_play
from engine.tiles import Tile, in_order, without
from engine.violations import Reason, Refused, refused


def draw(ruleset: Ruleset, round_: MeldingRound, seat: int, context: Context) -> Decision:
    """Decides on `DrawTile`.

    R21 to R24, turn_draw, turn_voluntary_draw, initial_meld_voluntary_delay, score_never_melded.
    """
    if isinstance(round_.step, Drawn):
        return refused(Reason.TURN_PHASE_WRONG)
    if not round_.pool:
        return refused(Reason.POOL_EMPTY)
    must_play = _must_play(round_, seat, ruleset)
    if must_play and can_play(context, round_, seat, ruleset) is Existence.YES:
        return refused(Reason.DRAW_NOT_ALLOWED_PLAY_EXISTS)
    declined = not must_play and _declines(round_, seat, ruleset, context)
    match ruleset.turn_draw:
        case TurnDraw.TWO_RIVER if len(round_.pool) > 1:
            return (TilesOffered(seat, (round_.pool[0], round_.pool[1]), declined),)
        case TurnDraw.UNTIL_PLAYABLE:
            tiles = _until_playable(round_, seat, ruleset, context)
            return _after_draw(TilesDrawn(seat, tiles, declined), ruleset)
        case TurnDraw.ONE_TO_THREE if _is_last_draw(round_, ruleset):
            return TurnOver((TileDrawn(seat, round_.pool[0], declined),))
        case _:
            return _after_draw(TileDrawn(seat, round_.pool[0], declined), ruleset)


def lay_on_river(round_: MeldingRound, action: LayOnRiver) -> Decision:
    """Decides on `LayOnRiver`."""
    if not isinstance(round_.step, Choosing):
        return refused(Reason.TURN_PHASE_WRONG)
    if action.tile not in round_.step.tiles:
        return refused(Reason.RIVER_DISCARD_NOT_DRAWN)
    return TurnOver((RiverTileLaid(action.seat, action.tile),))


def pass_turn(ruleset: Ruleset, round_: MeldingRound, seat: int, context: Context) -> Decision:
    """Decides on `Pass`: a pass with an empty pool (R24, R59, pool_empty_pass), or the end of a turn after a draw."""
    if isinstance(round_.step, Drawn):
        return _pass_after_draw(ruleset, round_, seat, round_.step.tile, context)
    if round_.pool:
        return refused(Reason.PASS_NOT_ALLOWED_POOL_NOT_EMPTY)
    if isinstance(round_.step, Drawing):
        return TurnOver((TurnEnded(seat),))
    must_play = ruleset.pool_empty_pass is PoolEmptyPass.ONLY_IF_NO_PLAY
    if must_play and can_play(context, round_, seat, ruleset) is Existence.YES:
        return refused(Reason.PASS_NOT_ALLOWED_PLAY_EXISTS)
    declined = not must_play and _declines(round_, seat, ruleset, context)
    return TurnOver((TurnPassed(seat, declined),))


def knock(ruleset: Ruleset, round_: MeldingRound, seat: int) -> Decision:
    """Decides on `Knock`: after a draw, or with an empty pool (knock_limit)."""
    if ruleset.knock_limit and isinstance(round_.step, Open) and round_.pool:
        return refused(Reason.TURN_PHASE_WRONG)
    return no_knock(ruleset, round_.rack(seat).tiles) or TurnOver((PlayerKnocked(seat),))


def no_knock(ruleset: Ruleset, tiles: tuple[Tile, ...]) -> Refused | None:
    """Returns why a player may not knock with tiles, if so (knock_limit)."""
    if not ruleset.knock_limit:
        return refused(Reason.KNOCK_NOT_IN_GAME)
    if not may_knock(tiles, ruleset):
        return refused(Reason.KNOCK_TOO_MANY_POINTS, points=rack_value(tiles, ruleset), limit=ruleset.knock_limit)
    return None


def _pass_after_draw(ruleset: Ruleset, round_: MeldingRound, seat: int, drawn: Tile, context: Context) -> Decision:
    """Decides on the end of a turn after a draw: refused to a player who has a play and must play."""
    playable = round_.rack(seat).tiles
    if ruleset.turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES:
        playable = without(playable, (drawn,))
    if _must_play(round_, seat, ruleset) and can_play(context, round_, seat, ruleset, playable) is Existence.YES:
        return refused(Reason.PASS_NOT_ALLOWED_PLAY_EXISTS)
    return TurnOver((TurnEnded(seat, _declines_after_draw(round_, seat, drawn, ruleset, context)),))


def _is_last_draw(round_: MeldingRound, ruleset: Ruleset) -> bool:
    """Returns whether a player draws as often in a turn as turn_draw ONE_TO_THREE lets them."""
    return isinstance(round_.step, Drawing) and len(round_.step.tiles) + 1 == DRAWS[ruleset.turn_draw]


def _after_draw(drawn: TileDrawn | TilesDrawn, ruleset: Ruleset) -> Decision:
    """Returns a draw that ends the turn unless the player may play after it (turn_play_after_draw)."""
    continues = ruleset.turn_play_after_draw is not TurnPlayAfterDraw.FORBIDDEN
    return (drawn,) if continues else TurnOver((drawn,))


def _must_play(round_: MeldingRound, seat: int, ruleset: Ruleset) -> bool:
    """Returns whether a player who has a play may not draw."""
    if ruleset.turn_voluntary_draw is TurnVoluntaryDraw.ONLY_IF_NO_PLAY:
        return True
    return not (ruleset.initial_meld_voluntary_delay or round_.rack(seat).has_melded)


def _declines(
    round_: MeldingRound, seat: int, ruleset: Ruleset, context: Context, tiles: tuple[Tile, ...] | None = None
) -> bool:
    """Returns whether a player who plays nothing could make the initial meld (score_never_melded FLAT_100_OR_200)."""
    matters = ruleset.score_never_melded is ScoreNeverMelded.FLAT_100_OR_200 and not round_.rack(seat).has_melded
    return matters and can_play(context, round_, seat, ruleset, tiles) is Existence.YES


def _declines_after_draw(round_: MeldingRound, seat: int, drawn: Tile, ruleset: Ruleset, context: Context) -> bool:
    """Returns whether a player who ends a turn after a draw could make the initial meld with the playable tiles.

    If only the drawn tile is unplayable, the draw itself already decided this.
    """
    if ruleset.turn_play_after_draw is TurnPlayAfterDraw.ALLOWED:
        return _declines(round_, seat, ruleset, context)
    if ruleset.turn_draw is TurnDraw.ONE:
        return False
    return _declines(round_, seat, ruleset, context, without(round_.rack(seat).tiles, (drawn,)))


def _until_playable(round_: MeldingRound, seat: int, ruleset: Ruleset, context: Context) -> tuple[Tile, ...]:
    """Returns the next tiles of the pool, up to the first after which the analysis does not rule out a play.

    Where the last drawn tile may not be played (turn_play_after_draw OTHER_TILES), the play must exist without it.
    """
    unplayable = ruleset.turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES
    for count in range(1, len(round_.pool)):
        tiles = in_order(round_.rack(seat).tiles + round_.pool[: count - unplayable])
        if can_play(context, round_, seat, ruleset, tiles) is not Existence.NO:
            return round_.pool[:count]
    return round_.pool
