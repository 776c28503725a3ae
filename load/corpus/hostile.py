"""Positions that are slow to answer, from seeds: they test the bounds of analysis.

    python -m load.corpus.hostile                searches and writes load/corpus/data/hostile.jsonl anew
    python -m load.corpus.hostile --minutes 20   searches longer

The search mutates random positions of every kind of ruleset, and keeps slower ones (hill climbing; one subject). Slower
means a longer time between two polls of the deadline, then a longer time in all.
"""

import argparse
import gc
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from rich.console import Console

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import Meld, MeldKind, ProposedMeld, as_proposed, read_meld
from engine.melding.notation import Position, format_position, parse_position
from engine.melding.ruleset import (
    OPTIONS,
    SABRA,
    Contract,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokersAdjacent,
    JokersMaxPerMeld,
    Manipulation,
    Ruleset,
    RunWrap,
    TurnDraw,
    problems,
    with_options,
)
from engine.melding.solver import (
    Objective,
    arrange,
    best_turn,
    has_turn,
)
from engine.melding.table import melds_of
from engine.notation import format_tiles, parse_tiles
from engine.options import text_of
from engine.seats import Rack
from engine.tiles import COLORS, JOKER, MAX_VALUE, Tile, in_order, tile

HOSTILE: Final = Path(__file__).parent / "data" / "hostile.jsonl"
ENDLESS: Final = 1_000_000_000
"""More nodes than any search visits, so that time ends it."""

Ask = Callable[[Situation, Budget], object]
QUESTIONS: Final[Mapping[str, Ask]] = {
    "most tiles": lambda situation, budget: best_turn(situation, Objective.MOST_TILES, budget),
    "highest value": lambda situation, budget: best_turn(situation, Objective.HIGHEST_VALUE, budget),
    "any turn": has_turn,
    "arrangement": lambda situation, budget: arrange(situation.rack, situation.ruleset, budget),
}
"""The functions of the solver, by name."""


@dataclass(frozen=True, slots=True)
class Hostile:
    """A position as stored in the file.

    Attributes:
        sort: The kind of rules (SORTS).
        question: The slow function (QUESTIONS).
        position: In the notation, with only the rack of the player to move and no pool.
        river: The tiles of the River, oldest first.
        options: The options that differ from the default, by name.
    """

    sort: str
    question: str
    position: str
    river: str
    options: Mapping[str, str | int]

    @property
    def ruleset(self) -> Ruleset:
        """Returns the rules."""
        return with_options(SABRA, {option: option_value(option, text) for option, text in self.options.items()})

    @property
    def situation(self) -> Situation:
        """Returns the situation of the player to move."""
        position, ruleset = parse_position(self.position), self.ruleset
        melds = tuple(read_meld(meld, ruleset) for meld in melds_of(position.table))
        table = tuple(meld for meld in melds if isinstance(meld, Meld))
        (rack,) = position.racks
        return Situation(table, rack.tiles, rack.has_melded, ruleset, parse_tiles(self.river))

    def ask(self, budget: Budget) -> object:
        """Returns the solver's answer."""
        return QUESTIONS[self.question](self.situation, budget)


def option_value(option: str, text: str | int) -> object:
    """Returns the value of an option from its form in a file."""
    return OPTIONS[option].parsed(text if isinstance(text, str) else text_of(text))


def read(path: Path = HOSTILE) -> tuple[Hostile, ...]:
    """Returns the positions of a file."""
    return tuple(Hostile(**json.loads(line)) for line in path.read_text().splitlines())


def recorded(situation: Situation, sort: str, question: str) -> Hostile:
    """Returns a situation in its stored form."""
    table = tuple(as_proposed(meld, situation.ruleset) for meld in situation.table)
    position = Position(table, (Rack(1, situation.rack, situation.has_melded),), (), 1)
    options = {
        option: value.name if isinstance(value, Enum) else value
        for option, row in OPTIONS.items()
        if (value := getattr(situation.ruleset, option)) != row.default
    }
    return Hostile(sort, question, format_position(position), format_tiles(situation.river), options)


# Measurement


class Watch:
    """A deadline that records how long it was not polled; all in CPU seconds of this thread."""

    def __init__(self, seconds: float) -> None:
        self.started = self.last = time.thread_time()
        self.end = self.started + seconds
        self.silence = 0.0
        self.stopped = self.started

    def __call__(self) -> bool:
        """Returns whether the time is up."""
        now = time.thread_time()
        self.silence, self.last = max(self.silence, now - self.last), now
        return now >= self.end

    def stop(self) -> None:
        """Records the time of the answer."""
        self()
        self.stopped = self.last

    @property
    def seconds(self) -> float:
        """Returns how long the answer took."""
        return self.stopped - self.started

    @property
    def over(self) -> float:
        """Returns by how much the answer exceeded its time."""
        return max(0.0, self.stopped - self.end)


def forget() -> None:
    """Clears all caches of the solver."""
    for name, module in list(sys.modules.items()):
        if name.startswith("engine."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
    gc.collect()  # avoids collecting the dropped caches during a measurement


def watched(hostile: Hostile, seconds: float) -> Watch:
    """Returns the measured answer with a time limit in seconds; the solver starts with empty caches."""
    situation = hostile.situation
    forget()
    watch = Watch(seconds)
    QUESTIONS[hostile.question](situation, Budget(nodes=ENDLESS, is_over=watch))
    watch.stop()
    return watch


# Rulesets

_MANY_JOKERS: Final = {"geometry_jokers": 8}
_SIX_COLORS: Final = {"geometry_colors": 6, "geometry_copies": 3, "geometry_jokers": 4}
_SAME_TURN: Final = {"initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED}
_REPLACE: Final = {
    "joker_retrieval_mode": JokerRetrievalMode.REPLACE,
    "joker_retrieval_same_meld": JokerRetrievalSameMeld.FORBIDDEN,
}
_CYCLIC: Final = {"run_wrap": RunWrap.CYCLIC}

SORTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "default": {},
    "many jokers": _MANY_JOKERS,
    "six colors": _SIX_COLORS,
    "six colors, many jokers": {**_SIX_COLORS, **_MANY_JOKERS},
    "three copies": {"geometry_copies": 3, "geometry_jokers": 4},
    "ace high": {"run_wrap": RunWrap.ONE_HIGH, **_MANY_JOKERS},
    "cyclic": {**_CYCLIC, "geometry_jokers": 4},
    "cyclic, many jokers": {**_CYCLIC, **_MANY_JOKERS},
    "cyclic, six colors": {**_CYCLIC, **_SIX_COLORS, **_MANY_JOKERS},
    "one joker a meld": {"jokers_max_per_meld": JokersMaxPerMeld.ONE, **_MANY_JOKERS},
    "two jokers a meld": {"jokers_max_per_meld": JokersMaxPerMeld.TWO, **_SIX_COLORS, **_MANY_JOKERS},
    "jokers balanced": {"jokers_max_per_meld": JokersMaxPerMeld.NOT_MORE_THAN_NATURALS, **_MANY_JOKERS},
    "jokers apart": {"jokers_adjacent": JokersAdjacent.FORBIDDEN, "jokers_may_lead": False, **_SIX_COLORS},
    "cyclic, jokers balanced": {
        **_CYCLIC,
        **_MANY_JOKERS,
        "jokers_max_per_meld": JokersMaxPerMeld.NOT_MORE_THAN_NATURALS,
    },
    "retrieval by replacement": _REPLACE | {"geometry_jokers": 4},
    "retrieval by replacement, many jokers": {**_REPLACE, **_MANY_JOKERS, **_CYCLIC},
    "locked jokers": _REPLACE | _MANY_JOKERS | {"joker_retrieval_mode": JokerRetrievalMode.LOCKED},
    "no retrieval": _REPLACE | _MANY_JOKERS | {"joker_retrieval_mode": JokerRetrievalMode.OFF},
    "a new meld for a joker": {"joker_retrieval_reuse": JokerRetrievalReuse.NEW_MELD, "geometry_jokers": 4},
    "a new meld with two tiles": {
        **_REPLACE,
        **_MANY_JOKERS,
        "joker_retrieval_reuse": JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES,
    },
    "primitives": {"manipulation": Manipulation.PRIMITIVES_ONLY, **_MANY_JOKERS},
    "no manipulation": {"manipulation": Manipulation.OFF, **_MANY_JOKERS},
    "jokers as tiles that there are": {"jokers_beyond_physical": False, **_MANY_JOKERS},
    "contract": {"contract": Contract.SUM_AT_MOST_41, **_MANY_JOKERS},
    "initial meld": {"initial_meld_threshold": 200, **_MANY_JOKERS},
    "initial meld, one reaches": {
        **_MANY_JOKERS,
        "initial_meld_count": InitialMeldCount.ONE_MELD_REACHES_THRESHOLD,
        "initial_meld_required_kind": InitialMeldRequiredKind.RUN,
    },
    "initial meld, jokers count nothing": {
        **_SIX_COLORS,
        "initial_meld_joker": InitialMeldJoker.ZERO,
        "initial_meld_threshold": 150,
    },
    "initial meld, cyclic": {**_CYCLIC, **_MANY_JOKERS, "initial_meld_threshold": 100},
    "initial meld, six colors": {**_SIX_COLORS, **_MANY_JOKERS, "initial_meld_threshold": 120},
    "same turn": _SAME_TURN | {"geometry_jokers": 4},
    "same turn, many jokers": _SAME_TURN | _MANY_JOKERS | {"initial_meld_threshold": 100},
    "same turn, cyclic": _SAME_TURN | _MANY_JOKERS | _CYCLIC,
    "same turn, without jokers": _SAME_TURN | _SIX_COLORS | {"initial_meld_joker": InitialMeldJoker.FORBIDDEN},
    "same turn, by replacement": _SAME_TURN | _REPLACE | _MANY_JOKERS,
    "River": {"turn_draw": TurnDraw.TWO_RIVER, **_MANY_JOKERS},
    "River, guarded": {"turn_draw": TurnDraw.TWO_RIVER, **_REPLACE, **_MANY_JOKERS},
}
"""Options that differ from the default, by kind."""

UNMELDED: Final = ("initial meld", "same turn")
"""The prefix of the kinds whose player has not melded."""


@lru_cache
def ruleset_of(sort: str) -> Ruleset:
    """Returns the rules of a kind. Raises ValueError if no game can have them."""
    ruleset = with_options(SABRA, SORTS[sort])
    if problems(ruleset):
        raise ValueError(f"{sort}: {problems(ruleset)}")
    return ruleset


# Random positions and their mutations


@dataclass(frozen=True)
class Maker:
    """Makes positions of a kind."""

    sort: str
    rng: random.Random

    @property
    def ruleset(self) -> Ruleset:
        """Returns the rules."""
        return ruleset_of(self.sort)

    def situation(self) -> Situation:
        """Returns a random position."""
        melded = not self.sort.startswith(UNMELDED)
        found = Situation((), (), melded, self.ruleset)
        for _ in range(self.rng.choice((0, 2, 5, 9, 14, 20, 30) if melded else (0, 0, 2, 6))):
            found = self._with_a_meld(found)
        for _ in range(self.rng.choice((0, 1, 3, 6, 14, 20, 30, 45, 60))):
            found = self._with_a_tile(found)
        for _ in range(self.rng.choice((0, 0, 4, 12))):
            found = self._with_a_meld_on_the_rack(found)
        if self.ruleset.turn_draw is TurnDraw.TWO_RIVER:
            for _ in range(self.rng.choice((1, 3, 8))):
                found = self._with_a_longer_river(found)
        return found

    def changed(self, situation: Situation) -> Situation:
        """Returns a position with a small random change."""
        changes = [
            self._with_a_meld,
            self._without_a_meld,
            self._with_a_tile,
            self._with_a_tile,
            self._without_a_tile,
            self._with_a_joker,
            self._with_a_meld_on_the_rack,
        ]
        if self.ruleset.turn_draw is TurnDraw.TWO_RIVER:
            changes.append(self._with_a_longer_river)
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            situation = self.rng.choice(changes)(situation)
        return situation

    def _left(self, situation: Situation) -> Counter[Tile]:
        """Returns the unused tiles of the tile set."""
        rules = situation.ruleset
        deck = Counter(rules.tiles(rules.players_max))
        return deck - Counter((*situation.rack, *situation.river, *(t for meld in situation.table for t in meld.tiles)))

    def _with_a_meld(self, situation: Situation) -> Situation:
        meld = self._meld(self._left(situation), situation.ruleset)
        return replace(situation, table=(*situation.table, meld)) if meld else situation

    def _with_a_meld_on_the_rack(self, situation: Situation) -> Situation:
        meld = self._meld(self._left(situation), situation.ruleset)
        return replace(situation, rack=in_order((*situation.rack, *meld.tiles))) if meld else situation

    def _meld(self, deck: Counter[Tile], ruleset: Ruleset) -> Meld | None:
        faces, kind = self._faces(ruleset)
        wild = self.rng.choice((0.0, 0.05, 0.3))
        tiles = tuple(face if deck[face] and self.rng.random() >= wild else JOKER for face in faces)
        if not Counter(tiles) <= deck:
            return None
        found = read_meld(ProposedMeld(tiles, kind), ruleset)
        return found if isinstance(found, Meld) else None

    def _faces(self, ruleset: Ruleset) -> tuple[tuple[Tile, ...], MeldKind]:
        colors, value = COLORS[: ruleset.geometry_colors], self.rng.randint(1, MAX_VALUE)
        if self.rng.random() < 0.5:
            size = self.rng.randint(3, len(colors))
            return tuple(tile(color, value) for color in self.rng.sample(colors, size)), MeldKind.GROUP
        color, length = self.rng.choice(colors), self.rng.choice((3, 3, 4, 5, 7, 13))
        return tuple(tile(color, (value + step - 1) % MAX_VALUE + 1) for step in range(length)), MeldKind.RUN

    def _without_a_meld(self, situation: Situation) -> Situation:
        gone = self.rng.randrange(len(situation.table) + 1)
        return replace(situation, table=tuple(m for place, m in enumerate(situation.table) if place != gone))

    def _with_a_tile(self, situation: Situation) -> Situation:
        left = sorted(self._left(situation).elements())
        return replace(situation, rack=in_order((*situation.rack, self.rng.choice(left)))) if left else situation

    def _with_a_joker(self, situation: Situation) -> Situation:
        has_one = self._left(situation)[JOKER] > 0
        return replace(situation, rack=in_order((*situation.rack, JOKER))) if has_one else situation

    def _without_a_tile(self, situation: Situation) -> Situation:
        gone = self.rng.randrange(len(situation.rack) + 1)
        return replace(situation, rack=tuple(t for place, t in enumerate(situation.rack) if place != gone))

    def _with_a_longer_river(self, situation: Situation) -> Situation:
        left = sorted(self._left(situation).elements())
        return replace(situation, river=(*situation.river, self.rng.choice(left))) if left else situation


# Search


class TooLongError(Exception):
    """A search was aborted."""


TRIED_SECONDS: Final = 0.2
"""The time limit of each search, if the solver polls it."""
MOST_SECONDS: Final = 4.0
"""The time limit if the solver does not poll."""
SHARE_OF_LONG: Final = 0.01
"""The weight of the whole time relative to the time without a poll; it gives hill climbing a slope."""


@dataclass(frozen=True, slots=True)
class Slow:
    """A position with the solver's times in seconds: the longest without a poll, and the whole."""

    hostile: Hostile
    silence: float
    seconds: float

    @property
    def worth(self) -> float:
        """Returns how hostile it is."""
        return self.silence + SHARE_OF_LONG * self.seconds


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise TooLongError


@contextmanager
def give_up_after(seconds: float) -> Iterator[None]:
    """Raises TooLongError after the given CPU time."""
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def measured(hostile: Hostile) -> Slow:
    """Returns a position with its times."""
    try:
        with give_up_after(MOST_SECONDS):
            watch = watched(hostile, TRIED_SECONDS)
    except TooLongError:
        return Slow(hostile, MOST_SECONDS, MOST_SECONDS)
    return Slow(hostile, watch.silence, watch.seconds)


def climbed(sort: str, question: str, seed: int, steps: int) -> Slow:
    """Returns the slowest position found in a number of steps from a random one."""
    rng = random.Random(f"{sort} {question} {seed}")
    maker = Maker(sort, rng)
    starts = [maker.situation() for _ in range(max(1, steps // 3))]
    tried = [(measured(recorded(start, sort, question)), start) for start in starts]
    best, situation = max(tried, key=lambda one: one[0].worth)
    for _ in range(steps - len(starts)):
        other = maker.changed(situation)
        slow = measured(recorded(other, sort, question))
        if slow.worth >= best.worth:
            best, situation = slow, other
    return best


def slowest(minutes: float, seed: int, report: Callable[[Slow], None]) -> Iterator[Slow]:
    """Returns the slowest positions found in some minutes, of all kinds and functions."""
    end = time.monotonic() + minutes * 60
    found: dict[tuple[str, str], Slow] = {}
    while time.monotonic() < end:
        asked = [(sort, question) for sort in SORTS for question in QUESTIONS]
        random.Random(seed).shuffle(asked)  # a short search should cover all kinds
        for sort, question in asked:
            if time.monotonic() < end:
                slow = climbed(sort, question, seed, steps=18)
                if (sort, question) not in found or slow.worth > found[sort, question].worth:
                    found[sort, question] = slow
                    report(slow)
        seed += 1
    yield from found.values()


SIZE: Final = 60


def chosen_of(found: list[Slow], size: int) -> list[Slow]:
    """Returns the slowest of each kind, then of each function as many others, in the order of kinds."""
    ranked = sorted(found, key=lambda slow: -slow.worth)
    first = {slow.hostile.sort: slow for slow in reversed(ranked)}
    others = [slow for slow in ranked if slow is not first[slow.hostile.sort]]
    asked: Counter[str] = Counter()
    places = []
    for slow in others:
        asked[slow.hostile.question] += 1
        places.append(asked[slow.hostile.question])
    in_turn = [slow for _, slow in sorted(zip(places, others, strict=True), key=lambda pair: pair[0])]
    order = list(SORTS)
    kept = [*first.values(), *in_turn][:size]
    return sorted(kept, key=lambda slow: (order.index(slow.hostile.sort), slow.hostile.question))


def _line(hostile: Hostile) -> str:
    return json.dumps({field.name: getattr(hostile, field.name) for field in fields(Hostile)})


def main() -> int:
    """Searches and writes."""
    parser = argparse.ArgumentParser(description="Search positions that are slow to answer.")
    parser.add_argument("--minutes", type=float, default=10, help="how long (10)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--to", type=Path, default=HOSTILE, help=f"the file ({HOSTILE.name})")
    chosen = parser.parse_args()
    print_line = partial(Console(width=10_000).print, markup=False, highlight=False)

    def report(slow: Slow) -> None:
        print_line(f"{slow.silence * 1e3:7.0f} ms without asking, {slow.seconds * 1e3:5.0f} ms: {_line(slow.hostile)}")

    kept = chosen_of(list(slowest(chosen.minutes, chosen.seed, report)), SIZE)
    chosen.to.parent.mkdir(parents=True, exist_ok=True)
    chosen.to.write_text("".join(f"{_line(slow.hostile)}\n" for slow in kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
