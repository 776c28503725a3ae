"""Pairs of games: random games of every family, their states, and the comparison of what a viewer gets of both."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

import grpc.aio

from engine.discard.events import HandsDealt
from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.discard.ruleset import Preset as DiscardPreset
from engine.events import Event, GameCreated
from engine.fair_deal import SEED_BYTES
from engine.game import Game, Playing, round_of
from engine.melding.analysis import options_needing_analysis
from engine.melding.drafts import Draft
from engine.melding.events import RoundStarted
from engine.melding.ruleset import Preset, Ruleset
from engine.replay import replay
from engine.room_settings import FairDeal, Hints, RacksShown, RoomSettings
from load.hidden.asks import SEARCHES, all_asks, changes_by, reads, turns_of, viewers, watch_from
from load.hidden.stage import LOST, OUTPUTS, Ask, Stage, Viewer, answer
from rummikub.v1 import game_pb2
from rummikub.v1 import game_service_pb2 as gs
from service.grpc_api.call_policy import REQUEST_ID
from support.hidden import GAME, Course, course_of, draft_of, token_of, unnamed
from support.okey_games import changes_under, random_101_ruleset, random_joker_ruleset, random_ruleset
from support.random_play import Change, players_of, position_in, random_changes, random_grid_room, random_room
from support.rooms import room, room_of

LIKENESSES: Final = 8
"""How many games that look the same are compared with each state."""
VIEWERS: Final = 3
"""How many kinds of callers look at each state."""
STATES: Final = 3
"""How many states of a game are compared."""
LAST_CHANGES: Final = 8
"""How many of a game's changes are stored; in some pairs all are."""
FEW: Final = 3
"""How many requests of a pair are chosen at random, beside the reads."""
WITH_METRICS: Final = 0.15
"""The share of pairs whose changes of metrics are compared, which takes longer than their requests."""
WITH_DRAFT: Final = 0.5
"""The share of pairs in which the player to move has saved a draft, if the game has drafts."""
WIRE: Final = 0.2
"""The share of pairs whose bytes are compared as they arrive, in new connections."""
SHORT, LONG = 50, 300
"""After how many changes a random game is cut."""
SEARCHES_SHARE: Final = 0.08
"""The share of pairs with a request that searches."""
RESUMED: Final = 0.3
"""The share of pairs of seats with a watch that resumes; those who hold a ticket watch in all."""
TRIES_TO_MOVE: Final = 0.2
"""The share of pairs in which a game changes before all is read again."""
TURNS_SHARE: Final = 0.6
"""The share of turns among those changes."""

Changes = Callable[[int], Iterator[Change]]


def _melding(preset: Preset) -> Changes:
    rules = room(room_of(preset), hints=Hints.TURN)
    return lambda seed: random_changes(seed, players_of(rules, seed), rules)


def _discards(choose: Callable[[random.Random], object]) -> Changes:
    def changes(seed: int) -> Iterator[Change]:
        rng = random.Random(seed)
        ruleset = choose(rng)
        settings = RoomSettings(
            turn_time_limit_seconds=rng.choice((0, 30)),
            racks_shown=rng.choice(tuple(RacksShown)),
            hints=Hints.TURN,
            fair_deal=rng.choice(tuple(FairDeal)),
        )
        return changes_under(ruleset, settings, rng)  # type: ignore[arg-type]

    return changes


def _fair_okey(seed: int) -> Iterator[Change]:
    settings = RoomSettings(turn_time_limit_seconds=0, fair_deal=FairDeal.COMMITTED)
    return changes_under(DISCARD_PRESETS[DiscardPreset.OKEY], settings, random.Random(seed))


def _random_melding(*, with_analysis: bool) -> Changes:
    def changes(seed: int) -> Iterator[Change]:
        rng = random.Random(seed)
        rules = room(random_room(rng, with_analysis=with_analysis), fair_deal=rng.choice(tuple(FairDeal)))
        return random_changes(seed, players_of(rules, seed), rules)

    return changes


def _random_grid(seed: int) -> Iterator[Change]:
    rules = random_grid_room(random.Random(seed))
    return random_changes(seed, players_of(rules, seed), rules)


def _from_position(seed: int) -> Iterator[Change]:
    """Yields the changes of a game, a lesson, that begins where another one was."""
    rules, rng = room(room_of(Preset.SABRA), hints=Hints.TURN), random.Random(seed)
    games = [change.applied.game for change in random_changes(seed, rng.randint(2, 4), rules)]
    positions = [position_in(game) for game in games if isinstance(game.phase, Playing)]
    later = [position for position in positions if position.table] or positions
    return random_changes(seed, 0, rules, position=rng.choice(later))


FAMILIES: Final[dict[str, Changes]] = {
    **{preset.name: _melding(preset) for preset in Preset},
    "from a position": _from_position,
    "random rulesets": _random_melding(with_analysis=False),
    "random rulesets that search": _random_melding(with_analysis=True),
    "random crosses": _random_grid,
    **{preset.name: _discards(lambda _, preset=preset: DISCARD_PRESETS[preset]) for preset in DiscardPreset},  # type: ignore[misc]
    "fair OKEY": _fair_okey,
    "random Okey": _discards(random_ruleset),
    "random 101 Okey": _discards(random_101_ruleset),
    "random American and International": _discards(random_joker_ruleset),
}
"""Random games of every family, by name."""


@dataclass(frozen=True)
class Leak:
    """A difference between two games of a pair.

    Attributes:
        family: The family of the game.
        seed: The seed of the pair.
        viewer: The kind of the viewer.
        place: Which RPC, or which output of the server, differs.
        one: What one game gave.
        other: What the other one gave.
    """

    family: str
    seed: str
    viewer: str
    place: str
    one: bytes
    other: bytes


@dataclass
class Tally:
    """What was compared, and the leaks that were found."""

    pairs: int = 0
    games: int = 0
    by_family: Counter[str] = field(default_factory=Counter)
    by_viewer: Counter[str] = field(default_factory=Counter)
    by_rpc: Counter[str] = field(default_factory=Counter)
    with_metrics: int = 0
    with_draft: int = 0
    moved: int = 0
    on_the_wire: int = 0
    wire_bytes: int = 0
    leaks: list[Leak] = field(default_factory=list)


def fair(course: Course, rng: random.Random) -> Course:
    """Returns the course of a game with the seeds of its fair deals, as hidden facts; others as they are."""
    created = next(iter(course.history[0]))
    if not (isinstance(created, GameCreated) and created.settings.fair_deal is FairDeal.COMMITTED):
        return course
    commitment = rng.randbytes(SEED_BYTES)

    def seeded(event: Event) -> Event:
        if isinstance(event, GameCreated):
            return replace(event, deal_commitment=commitment)
        return replace(event, seed=rng.randbytes(SEED_BYTES)) if isinstance(event, RoundStarted | HandsDealt) else event

    return Course([tuple(map(seeded, events)) for events in course.history], course.times)


class Comparison:
    """Compares pairs of games.

    Args:
        stage: The server.
        tally: Counts what was compared.
        most: How many pairs are compared.
        searches: The share of pairs with a request that searches.
        wire: The share of pairs whose bytes are compared as they arrive, in new connections.
    """

    def __init__(
        self, stage: Stage, tally: Tally, most: int, searches: float = SEARCHES_SHARE, wire: float = WIRE
    ) -> None:
        self._wire = wire
        self._searches = searches
        self._stage = stage
        self.tally = tally
        self._most = most

    @property
    def is_done(self) -> bool:
        """Whether enough pairs were compared."""
        return self.tally.pairs >= self._most

    async def of_game(self, family: str, seed: str, states: int = STATES) -> None:
        """Compares states of a random game with games that look the same."""
        rng = random.Random(f"{family} {seed}")
        changes = FAMILIES[family](rng.randrange(10**9))
        course, games = course_of(islice(changes, rng.choice((SHORT, SHORT, LONG))))
        course = fair(course, rng)
        self.tally.games += 1
        revisions = [revision for revision, game in enumerate(games, 1) if game.round]
        for revision in rng.sample(revisions, min(states, len(revisions))):
            if not self.is_done:
                await self._of_state(family, f"{seed} {revision}", course.until(revision), games[revision - 1])

    async def _of_state(self, family: str, seed: str, course: Course, game: Game) -> None:
        rng = random.Random(f"{family} {seed}")
        for viewer in rng.sample(viewers(game, rng, rng.choice(("web", "plain")), course.times[-1]), VIEWERS):
            parts = (rng.random() < share for share in (WITH_METRICS, self._wire, WITH_DRAFT))
            await self._of_viewer(_Pairing(family, seed, course, game, viewer, rng, *parts))

    async def _of_viewer(self, pairing: "_Pairing") -> None:
        rng, viewer, game = pairing.rng, pairing.viewer, pairing.game
        moves = rng.random() < TRIES_TO_MOVE and may_move(game) and not pairing.on_the_wire
        stored = None if rng.random() < 0.1 else LAST_CHANGES
        await self._put(pairing, pairing.course, stored)
        seen = await self._see(viewer)
        asks = self._chosen(pairing, seen)
        mover, changes = viewer, []
        if moves and rng.random() < TURNS_SHARE:
            mover = _seat(round_of(game).turn.seat, viewer)
            at_turn = await self._see(mover)
            changes = turns_of(at_turn, viewer) if at_turn else []
        elif moves and seen is not None:
            changes = changes_by(game, viewer, seen, rng)
        await self._put(pairing, pairing.course, stored)  # without what these calls have marked as seen
        names = [f"{place} {ask.rpc}" for place, ask in enumerate(asks)]
        base = await self._observed(pairing, asks, mover, changes)
        kept = draws_of(game) if moves and viewer.number == round_of(game).turn.seat else 0
        for _ in range(LIKENESSES):
            await self._put(pairing, pairing.course.lookalike(viewer.number, rng, kept), stored)
            other = await self._observed(pairing, asks, mover, changes)
            self._note(pairing, names, base, other)
        self.tally.with_draft += LIKENESSES * (pairing.draft(pairing.course) is not None)
        for ask in (*asks, *changes):
            self.tally.by_rpc[ask.path.removeprefix("/rummikub.")] += LIKENESSES

    def _chosen(self, pairing: "_Pairing", seen: game_pb2.Game | None) -> list[Ask]:
        """Returns requests: those that read the game, and a few others."""
        rng, viewer = pairing.rng, pairing.viewer
        seen = seen or game_pb2.Game(revision=pairing.game.revision, etag=f"{pairing.game.revision}-{1:032x}")
        asks = all_asks(seen, pairing.game, viewer, self._stage.clock, rng)
        quick = [ask for ask in asks if ask.rpc not in SEARCHES]
        chosen = [rng.choice(reads(seen)), *rng.sample(quick, min(FEW, len(quick)))]
        if rng.random() < self._searches:
            chosen.append(rng.choice([ask for ask in asks if ask.rpc in SEARCHES]))
        if viewer.is_operator:
            chosen.append(rng.choice([ask for ask in asks if ask.is_admin]))
        if viewer.ticket or (seen.seat and rng.random() < RESUMED):
            behind = rng.randint(1, min(LATEST_WATCHED, seen.revision - 1))
            chosen.append(watch_from(behind, f"{seen.revision - behind}-{seen.revision - behind:032x}"))
        return chosen

    async def _put(self, pairing: "_Pairing", course: Course, stored: int | None) -> None:
        key = pairing.viewer.key if pairing.viewer.key in {"web", "plain"} else "web"
        await self._stage.server.presence.flush()
        await self._stage.shelf.put(
            course, kept=stored, key=key, is_operators=pairing.viewer.is_operator, draft=pairing.draft(course)
        )
        self._stage.chance.restart()

    async def _see(self, viewer: Viewer) -> game_pb2.Game | None:
        """Returns the game as a viewer sees it; None if it is not theirs to see."""
        rpc: Any = self._stage.channel.unary_unary(
            "/rummikub.v1.GameService/GetGame", response_deserializer=gs.GetGameResponse.FromString
        )
        try:
            request = gs.GetGameRequest(game_id=GAME).SerializeToString()
            answered: gs.GetGameResponse = await rpc(request, metadata=viewer.metadata)
        except grpc.aio.AioRpcError:
            return None
        return answered.game

    async def _observed(
        self, pairing: "_Pairing", asks: Sequence[Ask], mover: Viewer, moves: Sequence[Ask]
    ) -> list[bytes]:
        viewer, stage = pairing.viewer, self._stage
        found = await stage.observe(asks, viewer, with_metrics=pairing.with_metrics)
        if pairing.on_the_wire:
            sent = await stage.sent([ask for ask in asks if ask.updates is None or ask.rpc == "WatchGame"], viewer)
            self.tally.wire_bytes += len(sent)
            found.append(sent)
        if moves:
            moved = [await answer(stage.channel, ask, (*mover.metadata, (REQUEST_ID, "move"))) for ask in moves]
            after = await stage.observe(
                reads(game_pb2.Game(revision=pairing.game.revision)), viewer, with_metrics=False
            )
            found += [*(moved if mover.number == viewer.number else ()), *after]
        etags = stage.shelf.made_etags()
        return [unnamed(one, etags) for one in found]

    def _note(self, pairing: "_Pairing", names: Sequence[str], one: Sequence[bytes], other: Sequence[bytes]) -> None:
        self.tally.pairs += 1
        self.tally.with_metrics += pairing.with_metrics
        self.tally.moved += len(one) > len(names) + len(OUTPUTS) + pairing.on_the_wire
        self.tally.on_the_wire += pairing.on_the_wire
        self.tally.by_family[pairing.family] += 1
        self.tally.by_viewer[pairing.viewer.kind] += 1
        if one == other:
            return
        places = [
            *names,
            *OUTPUTS,
            *(["wire"] * pairing.on_the_wire),
            *(f"after a move {place}" for place in range(len(one))),
        ]
        for place, first, second in zip(places, one, other, strict=False):
            if first != second and LOST not in {first, second}:
                leak = Leak(pairing.family, pairing.seed, pairing.viewer.kind, place, first, second)
                self.tally.leaks.append(leak)


LATEST_WATCHED: Final = 5


@dataclass(frozen=True)
class _Pairing:
    """A state of a game, and who looks at it."""

    family: str
    seed: str
    course: Course
    game: Game
    viewer: Viewer
    rng: random.Random
    with_metrics: bool
    on_the_wire: bool
    wants_draft: bool

    def draft(self, course: Course) -> Draft | None:
        """Returns the draft of the player to move in a game of the pair; None for none."""
        return draft_of(replay(course.history), self.viewer.number, course.times[-1]) if self.wants_draft else None


def _seat(seat: int, viewer: Viewer) -> Viewer:
    key = viewer.key if viewer.key in {"web", "plain"} else "web"
    return Viewer("mover", seat, token_of(seat), key)


def draws_of(game: Game) -> int:
    """Returns how many tiles of the pool a move of the seat to move may show it."""
    return 1 + (game.ruleset.penalty_tiles if isinstance(game.ruleset, Ruleset) else 0)


def may_move(game: Game) -> bool:
    """Returns whether a draw is only a draw: no bot plays on, no round ends, and no rule searches other racks."""
    if not isinstance(game.phase, Playing) or any(player.played_by for player in game.players):
        return False
    is_deep = len(round_of(game).pool) > 2 * draws_of(game)
    return is_deep and not (isinstance(game.ruleset, Ruleset) and options_needing_analysis(game.ruleset))
