"""Times of calls that search: of pairs of games that differ in hidden tiles, in random order, by a two-sample test."""

import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import median
from typing import Any, Final

import grpc.aio
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from engine.game import Game, Playing, round_of
from engine.melding.ruleset import PoolEmptyPass, TurnVoluntaryDraw
from load.hidden.asks import ask_of
from load.hidden.pairs import FAMILIES, draws_of
from load.hidden.stage import Ask, Stage, Viewer
from load.hidden.two_samples import probability
from rummikub.v1 import analysis_service_pb2 as an
from rummikub.v1 import game_pb2, meld_pb2
from rummikub.v1 import game_service_pb2 as gs
from rummikub.v1 import turn_service_pb2 as ts
from support.hidden import GAME, Course, course_of, token_of
from support.random_play import Change, players_of, random_changes
from support.rooms import room

PAIRS: Final = 10
"""How many pairs of games share the calls of a row."""
BATCH: Final = 50
"""How many calls are made of a pair before the next one, so that a run that is cut has some of each."""
LEAST: Final = 10
"""How many times of each game of a pair are compared at least."""
WARM_UP: Final = 5
LONGEST_SECONDS: Final = 0.25
"""Games whose calls take longer are replaced by others."""
MOST_CHANGES: Final = 40
"""After how many changes games are cut."""
LAST_CHANGES: Final = 4
"""How many of a game's changes are stored."""


@dataclass(frozen=True)
class Timed:
    """A kind of call whose time is measured.

    Attributes:
        request: Returns the request, given the game as its caller sees it.
        changes: Returns random games in which it is made.
        is_of_mover: Whether the seat to move calls; else a spectator.
    """

    request: Callable[[game_pb2.Game], Message]
    changes: Callable[[int], Iterator[Change]]
    is_of_mover: bool = True


@dataclass
class Samples:
    """The times of a row: for each pair, the seconds of calls of one game and of the other."""

    pairs: list[tuple[list[float], list[float]]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum(len(one) + len(other) for one, other in self.pairs)

    @property
    def least_probable(self) -> float:
        """The least probability of a pair, times the number of pairs: how probable any of them is by chance."""
        found = [probability(one, other) for one, other in self.pairs if min(len(one), len(other)) >= LEAST]
        return min(1.0, min(found) * len(found)) if found else 1.0

    @property
    def medians(self) -> tuple[float, float]:
        """The median of all times, and the largest difference of the medians of a pair, in seconds."""
        every = [value for pair in self.pairs for times in pair for value in times]
        gaps = [abs(median(one) - median(other)) for one, other in self.pairs if one and other]
        return median(every), max(gaps, default=0.0)


def _suggest(tier: Any) -> Callable[[game_pb2.Game], Message]:  # noqa: ANN401 - an enum of the contract
    return lambda _seen: an.SuggestTurnRequest(game_id=GAME, tier=tier, time_limit=Duration(seconds=10))


def _coach(seen: game_pb2.Game) -> Message:
    turn = an.CoachedTurn(table=seen.table)
    turn.table.melds.add(tiles=seen.rack[:3])
    return an.CoachTurnRequest(game_id=GAME, turn=turn, stage=an.COACH_STAGE_TURN, time_limit=Duration(seconds=10))


def _validated_draw(seen: game_pb2.Game) -> Message:
    return ts.PlayTurnRequest(game_id=GAME, etag=seen.etag, draw=ts.DrawTile(), validate_only=True)


def _stored_draw(seen: game_pb2.Game) -> Message:
    return ts.PlayTurnRequest(game_id=GAME, etag=seen.etag, draw=ts.DrawTile())


def _refused_play(seen: game_pb2.Game) -> Message:
    request = ts.PlayTurnRequest(game_id=GAME, etag=seen.etag)
    request.play.table.CopyFrom(meld_pb2.Table(melds=[meld_pb2.Meld(tiles=meld.tiles) for meld in seen.table.melds]))
    request.play.table.melds.add(tiles=seen.rack[:2])
    return request


def _draft(seen: game_pb2.Game) -> Message:
    return ts.SaveDraftRequest(game_id=GAME, etag=seen.etag, draft=game_pb2.Draft(table=seen.table))


def _view(_seen: game_pb2.Game) -> Message:
    return gs.GetGameRequest(game_id=GAME)


def _searching(seed: int) -> Iterator[Change]:
    """Returns a game whose rules refuse a draw by a player who can play, which takes a search."""
    rules = room(turn_voluntary_draw=TurnVoluntaryDraw.ONLY_IF_NO_PLAY, pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY)
    return random_changes(seed, players_of(rules, seed), rules)


ROWS: Final[dict[str, Timed]] = {
    "SuggestTurn, whether a play exists": Timed(_suggest(an.HINT_TIER_PLAY_EXISTS), FAMILIES["SABRA"]),
    "SuggestTurn, a whole turn": Timed(_suggest(an.HINT_TIER_TURN), FAMILIES["SABRA"]),
    "SuggestTurn, Okey": Timed(_suggest(an.HINT_TIER_TURN), FAMILIES["OKEY"]),
    "SuggestTurn, 101 Okey": Timed(_suggest(an.HINT_TIER_TURN), FAMILIES["OKEY_101"]),
    "CoachTurn": Timed(_coach, FAMILIES["SABRA"]),
    "PlayTurn, validate_only, rules that search": Timed(_validated_draw, _searching),
    "PlayTurn, rules that search": Timed(_stored_draw, _searching),
    "PlayTurn, refused": Timed(_refused_play, FAMILIES["SABRA"]),
    "SaveDraft": Timed(_draft, FAMILIES["SABRA"]),
    "GetGame, which does not search": Timed(_view, FAMILIES["SABRA"], is_of_mover=False),
}
"""What is measured, by name."""


@dataclass(frozen=True)
class _Pair:
    """Two games in the store's form that look the same to a caller, and the call."""

    worlds: tuple[object, object]
    ask: Ask
    viewer: Viewer
    now_ms: int


class Timing:
    """Measures times.

    Args:
        stage: The server.
        seed: The seed of the games and of the order of the calls.
    """

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._rng = random.Random(seed)
        self._seed = seed
        self.rows: dict[str, Samples] = {}
        self.answers: defaultdict[str, set[str]] = defaultdict(set)

    async def measure(self, calls: int, until: float, names: Sequence[str] = tuple(ROWS)) -> AsyncIterator[int]:
        """Measures all rows in turns, until each has a number of calls or the time is over; yields their number.

        Args:
            calls: How many calls of each row are made.
            until: When to end, by time.monotonic.
            names: The rows.
        """
        pairs = {name: [pair async for pair in self._pairs(name)] for name in names}
        self.rows = {name: Samples([([], []) for _ in pairs[name]]) for name in names}
        for batch in range(calls // BATCH):
            for name in names:
                if time.monotonic() > until:
                    return
                number = batch % len(pairs[name])
                for _ in range(BATCH):
                    world = self._rng.randrange(2)
                    seconds = await self._seconds(pairs[name][number], world)
                    self.rows[name].pairs[number][world].append(seconds)
            yield sum(row.calls for row in self.rows.values())

    async def _pairs(self, name: str) -> AsyncIterator[_Pair]:
        """Yields pairs of games whose calls are short enough to be repeated."""
        timed, found, seed = ROWS[name], 0, self._seed
        while found < PAIRS:
            seed += 1
            course, games = course_of(islice(timed.changes(seed), MOST_CHANGES))
            fitting = [game for game in games if _fits(game)]
            if not fitting:
                continue
            game = self._rng.choice(fitting)
            pair = await self._pair(timed, course.until(game.revision), game)
            warm = [await self._seconds(pair, world % 2) for world in range(WARM_UP)]
            if median(warm) < LONGEST_SECONDS:
                found += 1
                yield pair

    async def _pair(self, timed: Timed, course: Course, game: Game) -> _Pair:
        stage, seat = self._stage, round_of(game).turn.seat
        viewer = Viewer("seat", seat, token_of(seat)) if timed.is_of_mover else Viewer("spectator", 0)
        worlds = []
        other = course.lookalike(viewer.number, self._rng, kept=draws_of(game))
        for made in (course, other):
            await stage.shelf.put(made, kept=LAST_CHANGES, key="web")
            worlds.append(stage.shelf.taken())
        see: Any = stage.channel.unary_unary(GET_GAME, response_deserializer=gs.GetGameResponse.FromString)
        seen = (await see(_view(game_pb2.Game()).SerializeToString(), metadata=viewer.metadata)).game
        request = timed.request(seen)
        ask = ask_of(request.DESCRIPTOR.name.removesuffix("Request"), request)
        return _Pair((worlds[0], worlds[1]), ask, viewer, stage.clock.now_ms)

    async def _seconds(self, pair: _Pair, world: int) -> float:
        """Returns the time of a call on one of the games of a pair."""
        stage = self._stage
        stage.shelf.place(pair.worlds[world], pair.now_ms)
        stage.chance.restart()
        stage.spans.clear()
        stage.log.seek(0)
        stage.log.truncate()
        call: Any = stage.channel.unary_unary(pair.ask.path)
        began = time.perf_counter()
        try:
            await call(pair.ask.request, metadata=pair.viewer.metadata)
        except grpc.aio.AioRpcError as error:
            self.answers[pair.ask.rpc].add(error.code().name)
        else:
            self.answers[pair.ask.rpc].add("OK")
        return time.perf_counter() - began


GET_GAME: Final = "/rummikub.v1.GameService/GetGame"


def _fits(game: Game) -> bool:
    """Returns whether a person is to move in a game, with a pool to draw from, and no bot plays on."""
    if not isinstance(game.phase, Playing) or any(player.played_by for player in game.players):
        return False
    return len(round_of(game).pool) > 2 * draws_of(game)
