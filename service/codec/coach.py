"""Requests and responses of CoachTurn."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from engine.melding.analysis import AnySituation, Existence, GridSituation
from engine.melding.grid.cells import Grid, Placement, cells_of
from engine.melding.solver import steps as st
from engine.melding.table import as_grid
from engine.notation import format_tiles
from engine.tiles import Tile
from rummikub.v1 import analysis_service_pb2 as pb
from rummikub.v1 import violation_pb2
from service.analysis.coach import SUBJECT, Coached, TurnToJudge, Verdict
from service.analysis.queries import HintTier, PlayedTurn
from service.codec.analysis import encode_existence, encode_step, encode_suggestion
from service.codec.fields import invalid, river_index
from service.codec.messages import advice
from service.codec.tiles import encode_placement, encode_violation, only_melds, table

_TIERS: Final[dict[int, HintTier]] = {
    pb.COACH_STAGE_UNSPECIFIED: HintTier.TILES,
    pb.COACH_STAGE_COUNT: HintTier.TILES,
    pb.COACH_STAGE_MELDS: HintTier.TURN,
    pb.COACH_STAGE_STEP: HintTier.TURN,
    pb.COACH_STAGE_TURN: HintTier.TURN,
}
"""The tier of SuggestTurn that shows at least as much as each stage."""
_VERDICTS: Final = {
    Verdict.ILLEGAL: pb.TURN_VERDICT_ILLEGAL,
    Verdict.BEST: pb.TURN_VERDICT_BEST,
    Verdict.NOT_BEST: pb.TURN_VERDICT_NOT_BEST,
    Verdict.UNKNOWN: pb.TURN_VERDICT_UNKNOWN,
}
_VERDICT_TEXTS: Final = {
    Verdict.BEST: "TURN_IS_BEST",
    Verdict.NOT_BEST: "TURN_NOT_BEST",
    Verdict.UNKNOWN: "NOT_CERTAIN",
}


def tier_of_stage(stage: int) -> HintTier:
    """Returns the tier of hints that a game must allow for a stage."""
    if stage not in _TIERS:
        raise invalid("stage", f"{stage} is not a stage of a coach")
    return _TIERS[stage]


def turn_to_judge(request: pb.CoachTurnRequest, situation: AnySituation) -> TurnToJudge | None:
    """Returns the turn of a request; None without one."""
    if not request.HasField("turn"):
        return None
    place = river_index(request.turn, "turn.river_index")
    if not isinstance(situation, GridSituation):
        return TurnToJudge(only_melds(request.turn.table, SUBJECT), place)
    sent = as_grid(table(request.turn.table, SUBJECT))
    if sent is None:
        raise invalid(SUBJECT, "expected placements: the ruleset has table_layout GRID", "MALFORMED_TABLE")
    return TurnToJudge(sent, place)


def encode_coached(coached: Coached, situation: AnySituation | None, stage: int) -> pb.CoachTurnResponse:
    """Returns as much of an answer as the stage shows. The situation is None if nothing may be played now."""
    best, played = coached.best, coached.best.played
    response = pb.CoachTurnResponse(
        play_exists=encode_existence(best.exists),
        is_best=best.is_best,
        verdict=_VERDICTS[coached.verdict] if coached.verdict else pb.TURN_VERDICT_UNSPECIFIED,
        violations=map(encode_violation, coached.violations),
        missed=coached.missed,
    )
    if coached.verdict in _VERDICT_TEXTS:
        response.advice.append(advice(_VERDICT_TEXTS[coached.verdict]))
    if played is None or situation is None:
        response.advice.append(advice("NO_PLAY" if best.exists is Existence.NO else "NOT_CERTAIN"))
        return response
    response.tile_count = len(played.turn.tiles)
    response.advice.append(advice("WIN_EXISTS" if played.goes_out else "PLAY_EXISTS", count=response.tile_count))
    if stage >= pb.COACH_STAGE_MELDS and not isinstance(situation, GridSituation):
        changed = [place for place in range(len(situation.table)) if place not in played.turn.untouched]
        response.melds_changed.extend(changed)
        response.advice.append(_melds_advice(changed))
    if stage >= pb.COACH_STAGE_STEP:
        _add_step(response, played, situation)
    if stage == pb.COACH_STAGE_TURN:
        response.suggestion.CopyFrom(encode_suggestion(best, HintTier.TURN))
        response.advice.append(advice("WHOLE_TURN"))
    return response


def _melds_advice(changed: list[int]) -> violation_pb2.Advice:
    if not changed:
        return advice("NO_MELD_CHANGES")
    return advice("MELDS_CHANGE", melds=", ".join(str(place + 1) for place in changed))


def _add_step(response: pb.CoachTurnResponse, played: PlayedTurn, situation: AnySituation) -> None:
    """Adds a step that lays tiles of the rack."""
    if isinstance(situation, GridSituation):
        placed = next(_laid_on(played, situation))
        response.placement.CopyFrom(encode_placement(placed))
        tiles = format_tiles((placed.tile,))
        response.advice.append(advice("TILE_TO_CELL", tiles=tiles, x=placed.cell.x, y=placed.cell.y))
        return
    step, tiles_laid, meld = next(chain.from_iterable(map(_laying, played.steps)))
    response.step.CopyFrom(encode_step(step))
    tiles = format_tiles(tiles_laid)
    if isinstance(meld, st.TableMeld):
        response.advice.append(advice("TILES_TO_MELD", tiles=tiles, meld=meld.place))
    else:
        response.advice.append(advice("TILES_TO_NEW_MELD", tiles=tiles))


def _laid_on(played: PlayedTurn, situation: GridSituation) -> Iterator[Placement]:
    """Yields placements of tiles of the rack, also of one that replaces a joker."""
    before, after = cells_of(situation.table), as_grid(played.table) or Grid()
    for one in after.placements:
        if before.get(one.cell) != one.tile and one.tile in played.turn.tiles:
            yield one


def _laying(step: st.Step) -> Iterator[tuple[st.Step, tuple[Tile, ...], st.Label]]:
    """Yields a step, the tiles of the rack that it lays, and their meld, if it lays any."""
    match step:
        case st.Place(tiles, meld) | st.Extend(tiles, meld):
            yield step, tiles, meld
        case st.Substitute(meld, tile, st.FromRack()):
            yield step, (tile,), meld
        case _:
            pass
