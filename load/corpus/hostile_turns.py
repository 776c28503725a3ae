"""Turns that are slow to judge, from seeds: they test the bound of the rules' own searches.

    python -m load.corpus.hostile_turns                searches and writes load/corpus/data/hostile_turns.jsonl anew
    python -m load.corpus.hostile_turns --minutes 20   searches longer

The search mutates random turns of every kind, and keeps slower ones (hill climbing). All turns have sizes that the
service accepts, and positions that a tile set allows.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from engine.melding.melds import Meld, MeldKind, ProposedMeld, as_proposed, read_meld
from engine.melding.notation import PlayText, format_play, parse_play
from engine.melding.play import Play
from engine.melding.rules import Judgement, judge
from engine.melding.ruleset import (
    OPTIONS,
    SABRA,
    Contract,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokerRetrievalSource,
    JokersAdjacent,
    JokersDeclaration,
    Manipulation,
    MeldOrder,
    Ruleset,
    RunWrap,
    problems,
    with_options,
)
from engine.melding.table import melds_of
from engine.tiles import COLORS, JOKER, MAX_VALUE, Tile, in_order, naturals, tile, tile_set, value_of
from load.corpus.hostile import TooLongError, give_up_after, option_value

HOSTILE_TURNS: Final = Path(__file__).parent / "data" / "hostile_turns.jsonl"

MELDS_MAX: Final = 128
"""The most melds of a table that the service accepts."""

MELD_TILES_MAX: Final = 32
"""The most tiles of a meld that it accepts."""

RACK_MAX: Final = 128
"""The most tiles of a rack that it accepts."""

GIVEN_UP_SECONDS: Final = 5.0
"""The time limit of a turn in the search."""


@dataclass(frozen=True, slots=True)
class HostileTurn:
    """A turn as stored in the file.

    Attributes:
        sort: Its kind (SORTS).
        has_melded: Whether the player has melded.
        play: In the notation, without the tiles left on the rack.
        options: The options that differ from the default, by name.
    """

    sort: str
    has_melded: bool
    play: str
    options: Mapping[str, str | int]

    @property
    def to_judge(self) -> Play:
        """Returns the play without cached data."""
        ruleset = with_options(SABRA, {option: option_value(option, text) for option, text in self.options.items()})
        text = parse_play(self.play)
        before = tuple(
            meld for sent in melds_of(text.table_before) if isinstance(meld := read_meld(sent, ruleset), Meld)
        )
        return Play(before, melds_of(text.table_after), text.rack_before, self.has_melded, ruleset)


def read(path: Path = HOSTILE_TURNS) -> tuple[HostileTurn, ...]:
    """Returns the turns of a file."""
    return tuple(HostileTurn(**json.loads(line)) for line in path.read_text().splitlines())


def recorded(sort: str, play: Play) -> HostileTurn:
    """Returns a play in its stored form."""
    before = tuple(as_proposed(meld, play.ruleset) for meld in play.table_before)
    options = _beyond(SABRA, play.ruleset)
    options |= _beyond(with_options(SABRA, options), play.ruleset)  # options may imply other ones in some rulesets only
    written = {name: value.name if isinstance(value, Enum) else value for name, value in options.items()}
    text = format_play(PlayText(before, play.rack, play.table_after, ()))
    return HostileTurn(sort, play.has_melded, text, written)


def _beyond(ruleset: Ruleset, other: Ruleset) -> dict[str, Any]:
    """Returns the options in which a ruleset differs from another one."""
    both = ((option, getattr(ruleset, option), getattr(other, option)) for option in OPTIONS)
    return {name: theirs for name, ours, theirs in both if ours != theirs}


def judged(turn: HostileTurn) -> tuple[float, Judgement]:
    """Returns how long a turn takes to judge, in CPU seconds of this thread, and the judgement."""
    play = turn.to_judge
    started = time.thread_time()
    judgement = judge(play)
    return time.thread_time() - started, judgement


# Rulesets

_Values = Mapping[str, Sequence[object]]

_MANY_JOKERS: Final[Mapping[str, Any]] = {"geometry_jokers": 8}
_SAME_TURN: Final[Mapping[str, Any]] = {"initial_meld_same_turn_table_play": InitialMeldSameTurnTablePlay.ALLOWED}
_GEOMETRY: Final[_Values] = {"geometry_colors": (4, 6), "geometry_copies": (2, 3), "run_wrap": tuple(RunWrap)}
_RETRIEVAL: Final[_Values] = {
    "joker_retrieval_mode": tuple(JokerRetrievalMode),
    "joker_retrieval_source": tuple(JokerRetrievalSource),
    "joker_retrieval_reuse": tuple(JokerRetrievalReuse),
    "joker_retrieval_same_meld": tuple(JokerRetrievalSameMeld),
    "joker_retrieval_group_of_three": tuple(JokerRetrievalGroupOfThree),
    "joker_retrieval_end_of_run_free": (False, True),
}
_INITIAL: Final[_Values] = {
    "initial_meld_threshold": (0, 30, 60, 100, 150, 200),
    "initial_meld_count": tuple(InitialMeldCount),
    "initial_meld_joker": tuple(InitialMeldJoker),
    "initial_meld_required_kind": tuple(InitialMeldRequiredKind),
}
_MANIPULATION: Final[_Values] = {"manipulation": (Manipulation.OFF, Manipulation.PRIMITIVES_ONLY)}
_READING: Final[_Values] = {
    "meld_order": tuple(MeldOrder),
    "jokers_declaration": tuple(JokersDeclaration),
    "jokers_adjacent": tuple(JokersAdjacent),
}


@dataclass(frozen=True, slots=True)
class Sort:
    """A kind of turns that are expensive in one way.

    Attributes:
        fixed: The options of all turns.
        drawn: Further options, with the values from which they are drawn.
        has_melded: Whether the players have melded.
        is_dense: Whether the tiles have few values, so that each could have come from many melds.
        has_melds: Whether the tiles are laid in melds.
    """

    fixed: Mapping[str, Any]
    drawn: _Values
    has_melded: bool = True
    is_dense: bool = False
    has_melds: bool = True


SORTS: Final[Mapping[str, Sort]] = {
    "jokers": Sort(_MANY_JOKERS, {**_GEOMETRY, **_RETRIEVAL}, is_dense=True),
    "jokers on a large table": Sort(_MANY_JOKERS, {**_GEOMETRY, **_RETRIEVAL}),
    "jokers and an initial meld": Sort(
        {**_MANY_JOKERS, **_SAME_TURN}, {**_GEOMETRY, **_RETRIEVAL, **_INITIAL}, has_melded=False
    ),
    "an initial meld": Sort(_SAME_TURN, {**_GEOMETRY, **_INITIAL}, has_melded=False),
    "an initial meld of low values": Sort(
        _SAME_TURN,
        {**_GEOMETRY, **_INITIAL, "initial_meld_threshold": (60, 100, 150, 200)},
        has_melded=False,
        is_dense=True,
    ),
    "manipulation": Sort({}, {**_GEOMETRY, **_MANIPULATION}),
    "manipulation and an initial meld": Sort(_SAME_TURN, {**_GEOMETRY, **_INITIAL, **_MANIPULATION}, has_melded=False),
    "a contract and an initial meld": Sort(
        _SAME_TURN, {**_GEOMETRY, **_INITIAL, "contract": tuple(Contract)}, has_melded=False
    ),
    "melds that are none": Sort(_MANY_JOKERS, {**_GEOMETRY, **_READING}, has_melds=False),
}
"""The kinds of turns, by name."""


def _ruleset(sort: Sort, rng: random.Random) -> Ruleset:
    while True:
        drawn = {option: rng.choice(values) for option, values in sort.drawn.items()}
        ruleset = with_options(SABRA, {**sort.fixed, **drawn})
        if not problems(ruleset):
            return ruleset


# Random turns and their mutations

Melds = tuple[Meld, ...]


@dataclass(frozen=True)
class Maker:
    """Makes turns of a kind."""

    sort: Sort
    rng: random.Random

    def turn(self) -> Play | None:
        """Returns a random turn; None if the attempt failed."""
        rng, ruleset = self.rng, _ruleset(self.sort, self.rng)
        if not self.sort.has_melds:
            sent = tuple(self._heap(ruleset) for _ in range(MELDS_MAX))
            return Play((), sent, naturals(4), has_melded=True, ruleset=ruleset)
        first = rng.randint(1, MAX_VALUE - 7)
        span = (first, first + rng.choice((0, 1, 2, 4, 7))) if self.sort.is_dense else (1, MAX_VALUE)
        after = self._melds(_deck(ruleset), rng.choice((6, 8, 10, 15, 30, 70)), span, ruleset)
        left = _tiles(after)
        if not self.sort.has_melded:
            left -= Counter(dict.fromkeys(left, 1))  # nearly every meld may be the initial one then
        before = self._melds(left, rng.choice((3, 5, 7, 12, 30)), span, ruleset)
        return self._play(before, after, ruleset)

    def changed(self, play: Play) -> Play | None:
        """Returns a turn with a small random change; None if the attempt failed."""
        before, after, ruleset = play.table_before, play.melds, play.ruleset
        if not self.sort.has_melds:
            sent = tuple(meld if self.rng.random() < 0.9 else self._heap(ruleset) for meld in play.table_after)
            return replace(play, table_after=sent)
        values = [value_of(t) for meld in after for t in meld.tiles if t != JOKER]
        if not values:
            return None
        span = (min(values), max(values))
        match self.rng.randrange(5):
            case 0:
                before = self._exchanged(before, ruleset)
            case 1:
                after = self._exchanged(after, ruleset)
            case 2:
                kept = tuple(self.rng.sample(before, self.rng.randint(0, len(before))))
                left = _tiles(after) - _tiles(kept)
                before = kept + self._melds(left, self.rng.randint(1, 6), span, ruleset)
            case 3:
                more = self._melds(_deck(ruleset) - _tiles(after), self.rng.randint(1, 2), span, ruleset)
                after += more
                before += more if self.rng.random() < 0.5 else ()
            case _:
                ruleset = _ruleset(self.sort, self.rng)
        return self._play(before, after, ruleset)

    def _play(self, before: Melds, after: Melds, ruleset: Ruleset) -> Play | None:
        """Returns a turn between two tables; tiles that the first lacks are on the rack."""
        sent = tuple(as_proposed(meld, ruleset) for meld in after)
        old = [read_meld(as_proposed(meld, ruleset), ruleset) for meld in before]
        own = _tiles(after) - _tiles(before)
        is_possible = _tiles(after) <= _deck(ruleset) and _tiles(before) <= _tiles(after)
        if not is_possible or len(sent) > MELDS_MAX or not 0 < own.total() <= RACK_MAX:
            return None
        if not all(isinstance(meld, Meld) for meld in (*old, *(read_meld(meld, ruleset) for meld in sent))):
            return None
        table = tuple(meld for meld in old if isinstance(meld, Meld))
        laid = tuple(self.rng.sample(sent, len(sent)))
        return Play(table, laid, in_order(own.elements()), self.sort.has_melded, ruleset)

    def _heap(self, ruleset: Ruleset) -> ProposedMeld:
        """Returns tiles of one color or one value, jokers included, in random order."""
        rng, colors, wild = self.rng, COLORS[: ruleset.geometry_colors], self.rng.choice((0.1, 0.5, 0.9))
        size, color, value = rng.choice((6, 12, 13, 13, 14, MELD_TILES_MAX)), rng.choice(colors), rng.randint(1, 13)
        faces = [tile(color, (value + step) % MAX_VALUE + 1) for step in range(size)]
        if rng.random() < 0.2:
            faces = [tile(rng.choice(colors), value) for _ in range(size)]
        tiles = [JOKER if rng.random() < wild else face for face in faces]
        if rng.random() < 0.5:
            rng.shuffle(tiles)
        return ProposedMeld(tuple(tiles), rng.choice((None, None, *MeldKind)))

    def _melds(self, deck: Counter[Tile], count: int, span: tuple[int, int], ruleset: Ruleset) -> Melds:
        """Returns up to a number of melds of a deck; those with jokers first."""
        found: list[Meld] = []
        left = +deck
        for _ in range(6 * count):
            if len(found) < count:
                jokers = self.rng.choice((1, 1, 1, 2)) if left[JOKER] else 0
                meld = self._meld(left, span, ruleset, jokers)
                found += meld
                left -= _tiles(meld)
        return tuple(found)

    def _meld(self, deck: Counter[Tile], span: tuple[int, int], ruleset: Ruleset, jokers: int) -> Melds:
        rng, colors, value = self.rng, COLORS[: ruleset.geometry_colors], self.rng.randint(*span)
        if rng.random() < 0.6 or span[1] - span[0] < 2:
            kind = MeldKind.GROUP
            faces = [tile(color, value) for color in rng.sample(colors, rng.choice((3, 3, 3, 4)))]
        else:
            kind, color, length = MeldKind.RUN, rng.choice(colors), rng.choice((3, 3, 3, 4, 5))
            first = min(value, span[1] + 1 - length) if span[1] - span[0] + 1 >= length else span[0]
            faces = [tile(color, (first + step - 1) % MAX_VALUE + 1) for step in range(length)]
        wild = set(rng.sample(range(len(faces)), jokers))
        tiles = tuple(JOKER if place in wild else face for place, face in enumerate(faces))
        read = read_meld(ProposedMeld(tiles, kind), ruleset) if Counter(tiles) <= deck else None
        return (read,) if isinstance(read, Meld) else ()

    def _exchanged(self, table: Melds, ruleset: Ruleset) -> Melds:
        """Returns a table with two tiles exchanged, if its melds stay melds."""
        if not table:
            return table
        tiles = [list(meld.tiles) for meld in table]
        one, other = (self.rng.randrange(len(table)) for _ in range(2))
        here, there = self.rng.randrange(len(tiles[one])), self.rng.randrange(len(tiles[other]))
        tiles[one][here], tiles[other][there] = tiles[other][there], tiles[one][here]
        read = [
            read_meld(ProposedMeld(tuple(each), meld.kind), ruleset) for each, meld in zip(tiles, table, strict=True)
        ]
        melds = tuple(meld for meld in read if isinstance(meld, Meld))
        return melds if len(melds) == len(table) else table


def _deck(ruleset: Ruleset) -> Counter[Tile]:
    jokers = ruleset.jokers(ruleset.players_max)
    return Counter(tile_set(ruleset.geometry_colors, ruleset.geometry_copies, jokers))


def _tiles(melds: Sequence[Meld]) -> Counter[Tile]:
    return Counter(t for meld in melds for t in meld.tiles)


# Search


@dataclass(frozen=True, slots=True)
class Slow:
    """A turn, and how long it took to judge, in seconds."""

    turn: HostileTurn
    seconds: float


def measured(turn: HostileTurn) -> Slow:
    """Returns a turn with the shorter of two times."""
    try:
        with give_up_after(GIVEN_UP_SECONDS):
            return Slow(turn, min(judged(turn)[0] for _ in range(2)))
    except TooLongError:
        return Slow(turn, GIVEN_UP_SECONDS)


def climbed(name: str, seed: int, steps: int) -> Slow:
    """Returns the slowest turn found in a number of steps from a random one."""
    maker = Maker(SORTS[name], random.Random(f"{name} {seed}"))
    made = [play for _ in range(max(1, steps // 3)) if (play := maker.turn())]
    best, play = max(((measured(recorded(name, play)), play) for play in made), key=lambda one: one[0].seconds)
    for _ in range(steps - len(made)):
        other = maker.changed(play)
        if other is not None:
            slow = measured(recorded(name, other))
            if slow.seconds >= best.seconds:
                best, play = slow, other
    return best


def slowest(minutes: float, seed: int, report: Callable[[Slow], None]) -> Iterator[Slow]:
    """Returns the slowest turns of each kind found in some minutes."""
    end = time.monotonic() + minutes * 60
    found: dict[str, list[Slow]] = {name: [] for name in SORTS}
    while time.monotonic() < end:
        for name, known in found.items():
            if time.monotonic() < end:
                known.append(climbed(name, seed, steps=300))
                known.sort(key=lambda slow: -slow.seconds)
                del known[EACH:]
                report(known[0])
        seed += 1
    for known in found.values():
        yield from known


EACH: Final = 4
"""The turns of each kind in the file."""


def main() -> int:
    """Searches and writes."""
    parser = argparse.ArgumentParser(description="Search turns that are slow to judge.")
    parser.add_argument("--minutes", type=float, default=10, help="how long (10)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--to", type=Path, default=HOSTILE_TURNS, help=f"the file ({HOSTILE_TURNS.name})")
    chosen = parser.parse_args()
    console = Console()

    def report(slow: Slow) -> None:
        console.print(f"{slow.seconds * 1e3:7.1f} ms: {slow.turn.sort}", highlight=False)

    found = list(slowest(chosen.minutes, chosen.seed, report))
    chosen.to.write_text("".join(f"{_line(slow.turn)}\n" for slow in found))
    return 0


def _line(turn: HostileTurn) -> str:
    return json.dumps({field.name: getattr(turn, field.name) for field in fields(HostileTurn)})


if __name__ == "__main__":
    sys.exit(main())
