"""AnalysisService: decode, have a worker search, encode."""

import asyncio
from typing import Final

from engine.analysis import Situation
from engine.ruleset import Ruleset
from engine.views import GameView
from rummikub.v1 import analysis_service_pb2 as pb
from service import codec
from service.analysis import HowArranged, WhetherTurn, about_turn, check_tier, kept_tiles, own_situation
from service.analysis_pool import AnalysisPool
from service.faults import FieldFault, InvalidRequest, NotAPlayer
from service.games import Games
from service.identity import SPECTATOR
from service.servicers.rpc import Context, Service, caller, peer_of, unary

SEARCH_SHARE: Final = 0.9
"""How much of the time to a call's deadline a search may have; the rest is for the answer's way back."""


class AnalysisServicer:
    """The RPCs of AnalysisService.

    Args:
        games: Where a seat's own position is found.
        pool: Who searches.
    """

    def __init__(self, games: Games, pool: AnalysisPool) -> None:
        self._games = games
        self._pool = pool

    def service(self) -> Service:
        """The service to serve."""
        handlers = {
            "SuggestTurn": unary(pb.SuggestTurnRequest, self.suggest_turn),
            "HasLegalTurn": unary(pb.HasLegalTurnRequest, self.has_legal_turn),
            "ArrangeTiles": unary(pb.ArrangeTilesRequest, self.arrange_tiles),
            "BatchSuggestTurns": unary(pb.BatchSuggestTurnsRequest, self.batch_suggest_turns),
        }
        return Service("rummikub.v1.AnalysisService", handlers)

    async def suggest_turn(self, request: pb.SuggestTurnRequest, context: Context) -> bytes:
        """SuggestTurn."""
        tier, objective = codec.tier(request.tier), codec.objective(request.objective)
        seconds = codec.time_limit(request.time_limit_ms)
        situation, view = await self._subject(request, context)
        with self._pool.place(peer_of(context)):
            question = about_turn(situation, tier, objective, kept_tiles(view) if view else ())
            suggestion = await self._pool.ask(question, seconds, _until(context))
        return pb.SuggestTurnResponse(
            suggestion=codec.encode_suggestion(suggestion, tier), revision=view.revision if view else 0
        ).SerializeToString()

    async def _subject(self, request: pb.SuggestTurnRequest, context: Context) -> tuple[Situation, GameView | None]:
        """The position that is meant, and the view that it is made of if it is a seat's own."""
        match request.WhichOneof("subject"):
            case "position":
                return codec.situation(request.position, Ruleset()), None
            case "game_id":
                return await self._own(request, context)
            case None:
                raise InvalidRequest(FieldFault("subject", "expected one of position, game_id"))

    async def _own(self, request: pb.SuggestTurnRequest, context: Context) -> tuple[Situation, GameView]:
        game_id, sender = codec.game_id(request.game_id), caller(context)
        if sender == SPECTATOR:
            raise NotAPlayer
        view = (await self._games.get_game(game_id, sender)).view
        situation = own_situation(view)
        check_tier(codec.tier(request.tier), view.ruleset)
        return situation, view

    async def has_legal_turn(self, request: pb.HasLegalTurnRequest, context: Context) -> bytes:
        """HasLegalTurn."""
        situation = codec.situation(request.position, Ruleset())
        seconds = codec.time_limit(request.time_limit_ms)
        with self._pool.place(peer_of(context)):
            suggestion = await self._pool.ask(WhetherTurn(situation), seconds, _until(context))
        return pb.HasLegalTurnResponse(exists=codec.encode_existence(suggestion.exists)).SerializeToString()

    async def arrange_tiles(self, request: pb.ArrangeTilesRequest, context: Context) -> bytes:
        """ArrangeTiles."""
        rules = codec.ruleset(request.ruleset)
        tiles = codec.tiles_to_arrange(request, rules)
        seconds = codec.time_limit(request.time_limit_ms)
        with self._pool.place(peer_of(context)):
            arrangement = await self._pool.ask(HowArranged(tiles, rules), seconds, _until(context))
        return codec.encode_arrangement(arrangement).SerializeToString()

    async def batch_suggest_turns(self, request: pb.BatchSuggestTurnsRequest, context: Context) -> bytes:
        """BatchSuggestTurns: one position after the other, each with its share of the time that is left."""
        default = codec.ruleset(request.ruleset)
        tier, objective = codec.tier(request.tier), codec.objective(request.objective)
        seconds = codec.time_limit(request.time_limit_ms, codec.BATCH_TIME_LIMIT_MS)
        situations = []
        for place, position in enumerate(codec.positions(request)):
            situations.append(codec.situation(position, default, f"positions[{place}]."))
            await asyncio.sleep(0)  # other calls are not to wait for a long batch
        until = _until(context)
        suggestions = []
        with self._pool.place(peer_of(context)):
            for place, situation in enumerate(situations):
                share = _left(seconds, until) / (len(situations) - place)
                suggestion, spent = await self._pool.ask_timed(about_turn(situation, tier, objective), share, until)
                seconds = max(0.0, seconds - spent)
                suggestions.append(codec.encode_suggestion(suggestion, tier))
        return pb.BatchSuggestTurnsResponse(suggestions=suggestions).SerializeToString()


def _now() -> float:
    return asyncio.get_running_loop().time()


def _until(context: Context) -> float | None:
    """When a search for a call is to end by the call's deadline, if it has one, by the event loop's clock."""
    left = context.time_remaining()
    return None if left is None else _now() + left * SEARCH_SHARE


def _left(seconds: float, until: float | None) -> float:
    """How long may still be searched, by a time limit and by the call's deadline."""
    return seconds if until is None else min(seconds, until - _now())
