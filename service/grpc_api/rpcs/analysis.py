"""Searches: decodes, runs the search in a worker process, encodes."""

from collections.abc import Generator
from typing import Final

from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.melding.analysis import Existence
from engine.melding.ruleset import Ruleset
from engine.violations import Reason, refused
from rummikub.v1 import analysis_service_pb2 as pb
from service.analysis.coach import Coached, CoachQuery
from service.analysis.hands import own_hand_query
from service.analysis.pool import AnalysisPool
from service.analysis.queries import (
    ArrangementQuery,
    BestTurnQuery,
    HintTier,
    Suggestion,
    TurnExistsQuery,
    own_turn_query,
    turn_action,
    turn_query,
)
from service.app.identity import Caller
from service.app.views import GameSnapshotView
from service.codec import analysis, coach, fields, rulesets, turns
from service.codec.tiles import bounds_of_tables
from service.errors import ActionRefused, FieldFault, InvalidRequest, NotAPlayer
from service.grpc_api.call_origin import check_right, current_origin
from service.grpc_api.callers import caller
from service.grpc_api.deadlines import left_until, until_deadline
from service.grpc_api.handlers import Context
from service.grpc_api.rpc import Backend, Read, Rpc, Token
from service.runtime.origins import POSITION_SEARCHES


async def suggest_turn(backend: Backend, read: Read, _sender: Caller, context: Context) -> bytes:
    """SuggestTurn."""
    request, situation, _ = read
    tier, objective = analysis.tier(request.tier), analysis.objective(request.objective)
    seconds = analysis.time_limit(request)
    if situation is not None:
        check_right(POSITION_SEARCHES)
        found = await _found(backend.pool, turn_query(situation, tier, objective), seconds, context)
        return pb.SuggestTurnResponse(suggestion=analysis.encode_suggestion(found, tier)).SerializeToString()
    seen = await _own_view(backend, request, caller(context))
    if isinstance(seen.view.ruleset, DiscardRuleset):
        return await _suggest_for_hand(backend.pool, seen, tier, seconds, context)
    query = own_turn_query(seen.view, tier, objective)
    found = await _found(backend.pool, query, seconds, context) if query else Suggestion(Existence.NO)
    action = turn_action(seen.view, found) if tier is HintTier.TURN else None
    return pb.SuggestTurnResponse(
        suggestion=analysis.encode_suggestion(found, tier),
        revision=seen.view.revision,
        turn=turns.encode_turn_request(seen, action) if action else None,
    ).SerializeToString()


async def coach_turn(backend: Backend, read: Read, _sender: Caller, context: Context) -> bytes:
    """CoachTurn."""
    request, situation, _ = read
    tier, objective = coach.tier_of_stage(request.stage), analysis.objective(request.objective)
    seconds = analysis.time_limit(request)
    revision = None
    search: BestTurnQuery | TurnExistsQuery | None
    if situation is not None:
        check_right(POSITION_SEARCHES)
        search = turn_query(situation, tier, objective)
    else:
        seen = await _own_view(backend, request, caller(context))
        revision = seen.view.revision
        if isinstance(seen.view.ruleset, DiscardRuleset):
            raise ActionRefused(refused(Reason.ACTION_NOT_IN_GAME))
        search = own_turn_query(seen.view, tier, objective)
    if not isinstance(search, BestTurnQuery):  # no tile may be played now
        coached, at = Coached(Suggestion(Existence.NO)), None
    else:
        at = search.situation
        query = CoachQuery(search, coach.turn_to_judge(request, at))
        with backend.pool.admit(current_origin()) as admitted:
            coached = await admitted.ask(query, seconds, until_deadline(context))
    response = coach.encode_coached(coached, at, request.stage)
    if revision is not None:
        response.revision = revision
    return response.SerializeToString()


async def _suggest_for_hand(
    pool: AnalysisPool, seen: GameSnapshotView, tier: HintTier, seconds: float, context: Context
) -> bytes:
    query = own_hand_query(seen.view, tier)
    with pool.admit(current_origin()) as admitted:
        hint = await admitted.ask(query, seconds, until_deadline(context))
    response = analysis.encode_hand_hint(hint, tier)
    response.revision = seen.view.revision
    if hint.action:
        response.turn.CopyFrom(turns.encode_turn_request(seen, hint.action))
    return response.SerializeToString()


async def _own_view(
    backend: Backend, request: pb.SuggestTurnRequest | pb.CoachTurnRequest, sender: Caller
) -> GameSnapshotView:
    """Returns the game of a request as its caller sees it. Raises NotAPlayer without a seat."""
    if request.WhichOneof("subject") is None:
        raise InvalidRequest(FieldFault("subject", "expected one of position, game_id"))
    game_id = fields.game_id(request.game_id)
    if sender.is_spectator:
        raise NotAPlayer
    seen = await backend.app.games.get_game(game_id, sender)
    if seen.view.seat is None:  # the host without a seat
        raise NotAPlayer
    return seen


async def _found(
    pool: AnalysisPool, query: BestTurnQuery | TurnExistsQuery, seconds: float, context: Context
) -> Suggestion:
    with pool.admit(current_origin()) as admitted:
        return await admitted.ask(query, seconds, until_deadline(context))


async def has_legal_turn(backend: Backend, read: Read, _sender: Caller, context: Context) -> bytes:
    """HasLegalTurn."""
    request, situation, _ = read
    seconds = analysis.time_limit(request)
    suggestion = await _found(backend.pool, TurnExistsQuery(situation), seconds, context)
    return pb.HasLegalTurnResponse(exists=analysis.encode_existence(suggestion.exists)).SerializeToString()


async def arrange_tiles(backend: Backend, request: pb.ArrangeTilesRequest, _sender: Caller, context: Context) -> bytes:
    """ArrangeTiles."""
    rules = rulesets.ruleset(request.ruleset)
    tiles = analysis.tiles_to_arrange(request, rules)
    seconds = analysis.time_limit(request)
    with backend.pool.admit(current_origin()) as admitted:
        arrangement = await admitted.ask(ArrangementQuery(tiles, rules), seconds, until_deadline(context))
    return analysis.encode_arrangement(arrangement).SerializeToString()


async def batch_suggest_turns(backend: Backend, read: Read, _sender: Caller, context: Context) -> bytes:
    """BatchSuggestTurns. Searches the positions in order, each with an equal share of the remaining time."""
    request, situations, _ = read
    tier, objective = analysis.tier(request.tier), analysis.objective(request.objective)
    seconds = analysis.time_limit(request, analysis.BATCH_TIME_LIMIT_SECONDS)
    until = until_deadline(context)
    suggestions = []
    with backend.pool.admit(current_origin()) as admitted:
        for index, situation in enumerate(situations):
            share = left_until(seconds, until) / (len(situations) - index)
            suggestion, spent = await admitted.ask_timed(turn_query(situation, tier, objective), share, until)
            seconds = max(0.0, seconds - spent)
            suggestions.append(analysis.encode_suggestion(suggestion, tier))
    return pb.BatchSuggestTurnsResponse(suggestions=suggestions).SerializeToString()


async def explain_turn(backend: Backend, read: Read, _sender: Caller, context: Context) -> bytes:
    """ExplainTurn."""
    request, query, _ = read
    seconds = analysis.time_limit(request)
    with backend.pool.admit(current_origin()) as admitted:
        steps = await admitted.ask(query, seconds, until_deadline(context))
    return analysis.encode_explanation(query, steps).SerializeToString()


def _read_suggest(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.SuggestTurnRequest, data, *bounds_of_tables("position.table"))
    yield
    is_position = request.WhichOneof("subject") == "position"
    situation = analysis.situation(request.position, Ruleset()) if is_position else None
    return Read(request, situation, len(data))


def _read_coach(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.CoachTurnRequest, data, *bounds_of_tables("position.table", "turn.table"))
    yield
    is_position = request.WhichOneof("subject") == "position"
    situation = analysis.situation(request.position, Ruleset()) if is_position else None
    return Read(request, situation, len(data))


def _read_has_legal(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.HasLegalTurnRequest, data, *bounds_of_tables("position.table"))
    if not request.HasField("position"):
        raise fields.invalid("position", "expected a position")
    yield
    return Read(request, analysis.situation(request.position, Ruleset()), len(data))


def _read_batch(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.BatchSuggestTurnsRequest, data, fields.Most("positions", analysis.POSITIONS_MAX))
    default = rulesets.ruleset(request.ruleset)
    situations = []
    for index, position in enumerate(analysis.positions(request)):
        yield
        situations.append(analysis.situation(position, default, f"positions[{index}]."))
    return Read(request, situations, len(data))


def _read_explanation(data: bytes) -> Generator[None, None, Read]:
    request = fields.decode(pb.ExplainTurnRequest, data, *bounds_of_tables("table_before", "table_after"))
    yield
    return Read(request, analysis.turn_to_explain(request), len(data))


RPCS: Final[tuple[Rpc, ...]] = (
    Rpc(
        pb.SuggestTurnRequest,
        pb.SuggestTurnResponse,
        suggest_turn,
        token=Token.IGNORED,
        read=_read_suggest,
    ),
    Rpc(
        pb.CoachTurnRequest,
        pb.CoachTurnResponse,
        coach_turn,
        token=Token.IGNORED,
        read=_read_coach,
    ),
    Rpc(
        pb.HasLegalTurnRequest,
        pb.HasLegalTurnResponse,
        has_legal_turn,
        token=Token.IGNORED,
        read=_read_has_legal,
        right=POSITION_SEARCHES,
    ),
    Rpc(
        pb.ArrangeTilesRequest,
        pb.ArrangeTilesResponse,
        arrange_tiles,
        token=Token.IGNORED,
        right=POSITION_SEARCHES,
    ),
    Rpc(
        pb.BatchSuggestTurnsRequest,
        pb.BatchSuggestTurnsResponse,
        batch_suggest_turns,
        token=Token.IGNORED,
        read=_read_batch,
        right=POSITION_SEARCHES,
    ),
    Rpc(
        pb.ExplainTurnRequest,
        pb.ExplainTurnResponse,
        explain_turn,
        token=Token.IGNORED,
        read=_read_explanation,
    ),
)
