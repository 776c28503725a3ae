"""AnalysisService: decodes, runs the search in a worker process, encodes."""

from collections.abc import Generator, Sequence

from engine.melding.analysis import Situation
from engine.melding.ruleset import Ruleset
from engine.melding.solver import Existence
from rummikub.v1 import analysis_service_pb2 as pb
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
from service.app.games import Games
from service.app.views import GameSnapshotView
from service.codec import analysis, fields, rulesets, turns
from service.codec.tiles import most_melds
from service.errors import FieldFault, InvalidRequest, NotAPlayer
from service.grpc_api.call_origin import check_right, current_origin
from service.grpc_api.deadlines import left_until, until_deadline
from service.grpc_api.handlers import Context, RequestReader, Service, caller, unary
from service.grpc_api.record_review import RecordReview
from service.runtime.origins import POSITION_SEARCHES


class AnalysisServicer:
    """The RPCs of AnalysisService.

    Args:
        games: The use cases, for questions about a seat's own game.
        pool: The worker processes.
        reader: Decodes requests with positions.
    """

    def __init__(self, games: Games, pool: AnalysisPool, reader: RequestReader) -> None:
        self._games = games
        self._pool = pool
        self._reader = reader
        self._review = RecordReview(games, pool, reader)

    def service(self) -> Service:
        """Returns the service with its handlers."""
        handlers = {
            "SuggestTurn": self._reader.unary("SuggestTurn", _read_suggest, self.suggest_turn),
            "HasLegalTurn": self._reader.unary("HasLegalTurn", _read_has_legal, self.has_legal_turn),
            "ArrangeTiles": unary(pb.ArrangeTilesRequest, self.arrange_tiles),
            "BatchSuggestTurns": self._reader.unary("BatchSuggestTurns", _read_batch, self.batch_suggest_turns),
            **self._review.handlers(),
        }
        return Service("rummikub.v1.AnalysisService", handlers)

    async def suggest_turn(self, read: "_Suggest", context: Context) -> bytes:
        """SuggestTurn."""
        request, situation = read
        tier, objective = analysis.tier(request.tier), analysis.objective(request.objective)
        seconds = analysis.time_limit(request)
        if situation is not None:
            check_right(POSITION_SEARCHES)
            found = await self._found(turn_query(situation, tier, objective), seconds, context)
            return pb.SuggestTurnResponse(suggestion=analysis.encode_suggestion(found, tier)).SerializeToString()
        seen = await self._own_view(request, context)
        query = own_turn_query(seen.view, tier, objective)
        found = await self._found(query, seconds, context) if query else Suggestion(Existence.NO)
        action = turn_action(seen.view, found) if tier is HintTier.TURN else None
        return pb.SuggestTurnResponse(
            suggestion=analysis.encode_suggestion(found, tier),
            revision=seen.view.revision,
            turn=turns.encode_turn_request(seen, action) if action else None,
        ).SerializeToString()

    async def _own_view(self, request: pb.SuggestTurnRequest, context: Context) -> GameSnapshotView:
        """Returns the game of a request as its caller sees it. Raises NotAPlayer without a seat."""
        if request.WhichOneof("subject") is None:
            raise InvalidRequest(FieldFault("subject", "expected one of position, game_id"))
        game_id, sender = fields.game_id(request.game_id), caller(context)
        if sender.is_spectator:
            raise NotAPlayer
        seen = await self._games.get_game(game_id, sender)
        if seen.view.seat is None:  # the host without a seat
            raise NotAPlayer
        return seen

    async def _found(self, query: BestTurnQuery | TurnExistsQuery, seconds: float, context: Context) -> Suggestion:
        with self._pool.admit(current_origin()) as admitted:
            return await admitted.ask(query, seconds, until_deadline(context))

    async def has_legal_turn(self, read: "_HasLegal", context: Context) -> bytes:
        """HasLegalTurn."""
        request, situation = read
        seconds = analysis.time_limit(request)
        check_right(POSITION_SEARCHES)
        suggestion = await self._found(TurnExistsQuery(situation), seconds, context)
        return pb.HasLegalTurnResponse(exists=analysis.encode_existence(suggestion.exists)).SerializeToString()

    async def arrange_tiles(self, request: pb.ArrangeTilesRequest, context: Context) -> bytes:
        """ArrangeTiles."""
        rules = rulesets.ruleset(request.ruleset)
        tiles = analysis.tiles_to_arrange(request, rules)
        seconds = analysis.time_limit(request)
        check_right(POSITION_SEARCHES)
        with self._pool.admit(current_origin()) as admitted:
            arrangement = await admitted.ask(ArrangementQuery(tiles, rules), seconds, until_deadline(context))
        return analysis.encode_arrangement(arrangement).SerializeToString()

    async def batch_suggest_turns(self, read: "_Batch", context: Context) -> bytes:
        """BatchSuggestTurns. Searches the positions in order, each with an equal share of the remaining time."""
        request, situations = read
        tier, objective = analysis.tier(request.tier), analysis.objective(request.objective)
        seconds = analysis.time_limit(request, analysis.BATCH_TIME_LIMIT_SECONDS)
        check_right(POSITION_SEARCHES)
        until = until_deadline(context)
        suggestions = []
        with self._pool.admit(current_origin()) as admitted:
            for index, situation in enumerate(situations):
                share = left_until(seconds, until) / (len(situations) - index)
                suggestion, spent = await admitted.ask_timed(turn_query(situation, tier, objective), share, until)
                seconds = max(0.0, seconds - spent)
                suggestions.append(analysis.encode_suggestion(suggestion, tier))
        return pb.BatchSuggestTurnsResponse(suggestions=suggestions).SerializeToString()


_Suggest = tuple[pb.SuggestTurnRequest, Situation | None]
"""A request with its position; None for a position in a game."""
_HasLegal = tuple[pb.HasLegalTurnRequest, Situation]
_Batch = tuple[pb.BatchSuggestTurnsRequest, Sequence[Situation]]


def _read_suggest(data: bytes) -> Generator[None, None, _Suggest]:
    request = fields.decode(pb.SuggestTurnRequest, data, most_melds("position.table"))
    yield
    is_position = request.WhichOneof("subject") == "position"
    return request, analysis.situation(request.position, Ruleset()) if is_position else None


def _read_has_legal(data: bytes) -> Generator[None, None, _HasLegal]:
    request = fields.decode(pb.HasLegalTurnRequest, data, most_melds("position.table"))
    if not request.HasField("position"):
        raise fields.invalid("position", "expected a position")
    yield
    return request, analysis.situation(request.position, Ruleset())


def _read_batch(data: bytes) -> Generator[None, None, _Batch]:
    request = fields.decode(pb.BatchSuggestTurnsRequest, data, fields.Most("positions", analysis.POSITIONS_MAX))
    default = rulesets.ruleset(request.ruleset)
    situations = []
    for index, position in enumerate(analysis.positions(request)):
        yield
        situations.append(analysis.situation(position, default, f"positions[{index}]."))
    return request, situations
