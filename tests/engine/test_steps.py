"""Steps of turns, replayed on a model of the table that knows neither rules nor explanations; one subject."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from conformance.engine_answers import play_of as play_of_case
from conformance.engine_answers import ruleset_of
from engine.melding.analysis import Situation
from engine.melding.events import TilesPlayed
from engine.melding.game import round_of
from engine.melding.melds import Meld, MeldKind, ProposedMeld, as_proposed, read_meld
from engine.melding.ruleset import SABRA, Ruleset, RunWrap
from engine.melding.solver import best_turn
from engine.melding.solver.explanation import explain
from engine.melding.solver.steps import (
    Arrange,
    Extend,
    FromMeld,
    FromRack,
    Join,
    Label,
    LayJokers,
    NewMeld,
    Place,
    Pull,
    Split,
    Step,
    Substitute,
    TableMeld,
    Take,
    describe_step,
)
from engine.melding.table import melds_of
from engine.notation import Naming, NotationError, parse_tiles
from engine.tiles import COLORS, JOKER, MAX_VALUE, Tile, in_order, tile, tile_set
from support.conformance_cases import load
from support.plays import play_of
from support.random_play import random_changes, random_ruleset

Table = tuple[Meld, ...]


# A model of the table


@dataclass
class Workbench:
    """The melds by label, finished or not; the rack tiles still to be played; the number of free jokers."""

    table: Table
    rack: Counter[Tile]
    ruleset: Ruleset
    melds: dict[Label, ProposedMeld] = field(default_factory=dict)
    free: int = 0

    def __post_init__(self) -> None:
        for place, meld in enumerate(self.table, 1):
            self.melds[TableMeld(place)] = as_proposed(meld, self.ruleset)

    def do(self, step: Step) -> None:
        match step:
            case Pull(tiles):
                self.rack.update(tiles)
            case Split():
                self._split(step)
            case Substitute(meld, tile_, source, laid):
                self._come_from(source, (tile_,))
                assert tile_ in self._faces_of_jokers()
                assert self._is_run(meld) is False or is_replaced(self.melds[meld].tiles, tile_, laid.tiles)
                self._lay(meld, laid, came=(tile_,), went=(JOKER,))
                self.free += 1
            case Arrange(meld, laid):
                assert laid != self.melds[meld]
                self._lay(meld, laid)
            case Take(source, tiles, meld, laid):
                assert source.left.tiles
                self._come_from(source, tiles)
                self._lay(meld, laid, came=tiles)
            case Join(source, tiles, meld, laid):
                assert in_order(self.melds.pop(source).tiles) == in_order(tiles)
                self._lay(meld, laid, came=tiles)
            case Place(tiles, meld, laid):
                assert meld not in self.melds
                self._come_from(FromRack(), tiles)
                self._lay(meld, laid, came=tiles)
            case Extend(tiles, meld, laid):
                assert meld in self.melds
                self._come_from(FromRack(), tiles)
                self._lay(meld, laid, came=tiles)
            case LayJokers(jokers, meld, laid):
                assert meld in self.melds
                self.free -= jokers
                assert self.free >= 0
                self._lay(meld, laid, came=(JOKER,) * jokers)

    def _split(self, step: Split) -> None:
        old = self.melds.pop(step.meld)
        assert len(step.parts) > 1
        assert [part.meld for part in step.parts].count(step.meld) == 1
        tiles = tuple(t for part in step.parts for t in part.laid.tiles)
        assert tiles == old.tiles if old.kind is MeldKind.RUN else in_order(tiles) == in_order(old.tiles)
        for part in step.parts:
            assert part.meld not in self.melds
            self.melds[part.meld] = part.laid

    def _come_from(self, source: FromRack | FromMeld, tiles: tuple[Tile, ...]) -> None:
        assert tiles
        if isinstance(source, FromMeld):
            self._lay(source.meld, source.left, went=tiles)
            return
        assert Counter(tiles) <= self.rack
        self.rack -= Counter(tiles)

    def _lay(self, meld: Label, laid: ProposedMeld, came: tuple[Tile, ...] = (), went: tuple[Tile, ...] = ()) -> None:
        old = self.melds.get(meld, ProposedMeld(()))
        assert in_order((*old.tiles, *came)) == in_order((*laid.tiles, *went))
        self.melds[meld] = laid
        if not laid.tiles:
            del self.melds[meld]

    def _is_run(self, meld: Label) -> bool:
        """Returns whether a meld was a run and stays one."""
        kinds = {self.table[meld.place - 1].kind} if isinstance(meld, TableMeld) else {meld.becomes.kind}
        return kinds == {MeldKind.RUN} and (self.melds[meld].kind is not MeldKind.GROUP)

    def _faces_of_jokers(self) -> set[Tile]:
        return {face for meld in self.table for faces in meld.joker_faces for face in faces}


def is_replaced(old: tuple[Tile, ...], tile_: Tile, new: tuple[Tile, ...]) -> bool:
    """Returns whether a tile took the place of a joker, and all other tiles kept theirs."""
    return any((*old[:place], tile_, *old[place + 1 :]) == new for place, joker in enumerate(old) if joker == JOKER)


def normalized(meld: ProposedMeld) -> ProposedMeld:
    """Returns a meld; a group in a fixed order of its tiles, because that order has no meaning."""
    return replace(meld, tiles=in_order(meld.tiles)) if meld.kind is MeldKind.GROUP else meld


def identity(meld: Meld) -> object:
    return normalized(ProposedMeld(meld.tiles, meld.kind)), sorted(meld.joker_faces)


def replayed(
    before: Table, after: Table, ruleset: Ruleset = SABRA, untouched: tuple[int, ...] = ()
) -> tuple[Step, ...]:
    """Returns the steps between two tables after replaying them successfully."""
    rack = Counter(t for meld in after for t in meld.tiles) - Counter(t for meld in before for t in meld.tiles)
    steps = explain(before, after, ruleset, untouched=untouched)
    bench = Workbench(before, rack, ruleset)
    for step in steps:
        bench.do(step)
        assert describe_step(step)
        assert "\n" not in describe_step(step)
    assert not bench.rack
    assert bench.free == 0
    changed = {label for step in steps for label in changed_labels(step)}
    stayed = [meld for place, meld in enumerate(before, 1) if TableMeld(place) not in changed]
    left = Counter(map(repr, map(identity, after))) - Counter(map(repr, map(identity, stayed)))
    assert sum(left.values()) == len(after) - len(stayed)
    made = [laid for label, laid in bench.melds.items() if label in changed]
    wanted = [as_proposed(meld, ruleset) for meld in after]
    assert Counter(map(normalized, made)) <= Counter(map(normalized, wanted))
    assert len(made) + len(stayed) == len(after)
    for label, laid in bench.melds.items():
        if isinstance(label, NewMeld):
            assert label.becomes == laid == wanted[label.place - 1]
    return steps


def changed_labels(step: Step) -> tuple[Label, ...]:
    """Returns the melds that a step changes."""
    match step:
        case Pull():
            return ()
        case Split(meld, parts):
            return (meld, *(part.meld for part in parts))
        case Substitute(meld, _, FromMeld(source)) | Take(FromMeld(source), _, meld) | Join(source, _, meld):
            return meld, source
        case Substitute(meld) | Arrange(meld) | Place(_, meld) | Extend(_, meld) | LayJokers(_, meld):
            return (meld,)


def described(play: str, ruleset: Ruleset = SABRA) -> list[str]:
    """Returns the steps of a play as text."""
    parsed = play_of(play, ruleset)
    assert parsed.is_settled
    return [describe_step(step) for step in replayed(parsed.table_before, parsed.melds, ruleset)]


# Turns and their steps

TURNS = {
    "a run grows": (
        "[R3 R4 R5] + {R6} -> [R3 R4 R5 R6] ; {}",
        ["Put R6 from the rack to meld 1: [R3 R4 R5 R6]"],
    ),
    "a new meld beside one that nobody touches": (
        "[R3 R4 R5] + {K8 B8 O8} -> [R3 R4 R5] | [B8 K8 O8] ; {}",
        ["Lay B8 K8 O8 from the rack for the new meld [B8 K8 O8]"],
    ),
    "a run is cut for its second copy": (
        "[B6 B7 B8 B9 B10] + {B8} -> [B6 B7 B8] | [B8 B9 B10] ; {}",
        ["Cut meld 1: [B6 B7 B8] and [B9 B10]", "Put B8 from the rack to the new meld [B8 B9 B10]"],
    ),
    "a tile between two parts stays with the old meld until it is taken": (
        "[R1 R2 R3 R4 R5 R6 R7 R8] + {B4 K4} -> [R1 R2 R3] | [R4 B4 K4] | [R5 R6 R7 R8] ; {}",
        [
            "Cut meld 1: [R1 R2 R3] and [R4 R5 R6 R7 R8]",
            "Take R4 from meld 1, which leaves [R5 R6 R7 R8], to the new meld [R4 B4 K4]: [R4]",
            "Put B4 K4 from the rack to the new meld [R4 B4 K4]",
        ],
    ),
    "two runs become one": (
        "[R3 R4 R5] | [R6 R7 R8] + {R9} -> [R3 R4 R5 R6 R7 R8 R9] ; {}",
        [
            "Join meld 2, [R6 R7 R8], to meld 1: [R3 R4 R5 R6 R7 R8]",
            "Put R9 from the rack to meld 1: [R3 R4 R5 R6 R7 R8 R9]",
        ],
    ),
    "a run is used up": (
        "[R5 R6 R7] | [B5 K5 O5] | [B6 K6 O6] | [B7 K7 O7] + {R8 B8 K8} -> "
        "[B5 K5 O5 R5] | [B6 K6 O6 R6] | [B7 K7 O7 R7] | [R8 B8 K8] ; {}",
        [
            "Take R5 from meld 1, which leaves [R6 R7], to meld 2: [B5 K5 O5 R5]",
            "Take R6 from meld 1, which leaves [R7], to meld 3: [B6 K6 O6 R6]",
            "Join meld 1, [R7], to meld 4: [B7 K7 O7 R7]",
            "Lay R8 B8 K8 from the rack for the new meld [R8 B8 K8]",
        ],
    ),
    "a joker is replaced from the rack": (
        "[R4 J R6] + {R5 O11 O12} -> [R4 R5 R6] | [O11 O12 J] ; {}",
        [
            "Put R5 from the rack in the joker's place in meld 1: [R4 R5 R6]; the joker is free",
            "Lay O11 O12 from the rack for the new meld [O11 O12 J]: [O11 O12]",
            "Put the free joker to the new meld [O11 O12 J]",
        ],
    ),
    "a joker is replaced from the table": (
        "[R4 J R6] | [R5 B5 K5 O5] + {O11 O12} -> [R4 R5 R6] | [B5 K5 O5] | [O11 O12 J] ; {}",
        [
            "Put R5 from meld 2, which leaves [B5 K5 O5], "
            "in the joker's place in meld 1: [R4 R5 R6]; the joker is free",
            "Lay O11 O12 from the rack for the new meld [O11 O12 J]: [O11 O12]",
            "Put the free joker to the new meld [O11 O12 J]",
        ],
    ),
    "two jokers of one group are replaced": (
        "group[J R5 J] + {B5 K5 O1} -> [R5 B5 K5] | group[J O1 J] ; {}",
        [
            "Put B5 from the rack in the joker's place in meld 1: [B5 R5 J]; the joker is free",
            "Put K5 from the rack in the joker's place in meld 1: [R5 B5 K5]; the joker is free",
            "Lay O1 from the rack for the new meld group[J O1 J]: [O1]",
            "Put the 2 free jokers to the new meld group[J O1 J]",
        ],
    ),
    "a joker goes on in its run": (
        "[R4 R5 J] + {R6} -> [R4 R5 R6 J] ; {}",
        [
            "Put R6 from the rack in the joker's place in meld 1: [R4 R5 R6]; the joker is free",
            "Put the free joker to meld 1: [R4 R5 R6 J]",
        ],
    ),
    "a joker changes sides": (
        "[R4 R5 J] + {R2} -> [R2 J R4 R5] ; {}",
        ["Lay meld 1 in another way: [J R4 R5]", "Put R2 from the rack to meld 1: [R2 J R4 R5]"],
    ),
    "a joker stays in its group, which has a color less for it": (
        "[R5 B5 J] + {K5} -> [R5 B5 K5 J] ; {}",
        ["Put K5 from the rack to meld 1: [R5 B5 K5 J]"],
    ),
    "a declared joker of a group is replaced": (
        "group[R5 B5 J=K5] + {K5} -> [R5 B5 K5 J] ; {}",
        [
            "Put K5 from the rack in the joker's place in meld 1: [R5 B5 K5]; the joker is free",
            "Put the free joker to meld 1: [R5 B5 K5 J]",
        ],
    ),
    "a joker is declared": (
        "[R5 B5 J] | [R6 R7 R8] + {R9} -> group[R5 B5 J=K5] | [R6 R7 R8 R9] ; {}",
        ["Put R9 from the rack to meld 2: [R6 R7 R8 R9]", "Lay meld 1 in another way: group[R5 B5 J=K5]"],
    ),
    "a joker is declared to be something else": (
        "group[R5 B5 J=O5] | [R6 R7 R8] + {R9} -> group[R5 B5 J=K5] | [R6 R7 R8 R9] ; {}",
        ["Lay meld 1 in another way: group[R5 B5 J=K5]", "Put R9 from the rack to meld 2: [R6 R7 R8 R9]"],
    ),
    "a run is said to be a group": (
        "run[J J R5] | [R6 R7 R8] + {R9} -> group[J J R5] | [R6 R7 R8 R9] ; {}",
        ["Lay meld 1 in another way: group[J J R5]", "Put R9 from the rack to meld 2: [R6 R7 R8 R9]"],
    ),
    "the order of a group means nothing": (
        "[R5 B5 K5] + {O5 R6 R7 R8} -> [K5 R5 B5] | [R6 R7 R8] ; {O5}",
        ["Lay R6 R7 R8 from the rack for the new meld [R6 R7 R8]"],
    ),
    "of groups of the same tiles the one that lies otherwise changes": (
        "[R5 B5 K5] | [B5 R5 K5] + {O5} -> [B5 R5 K5] | [R5 B5 K5 O5] ; {}",
        ["Put O5 from the rack to meld 1: [R5 B5 K5 O5]"],
    ),
    "of two copies the one is moved that others go with": (
        "[R5 B5 K5 O5] | [R5 R6 R7 R8] + {R3 R4 O6 O7} -> [B5 K5 R5] | [O5 O6 O7] | [R3 R4 R5 R6 R7 R8] ; {}",
        [
            "Take O5 from meld 1, which leaves [B5 K5 R5], to the new meld [O5 O6 O7]: [O5]",
            "Put O6 O7 from the rack to the new meld [O5 O6 O7]",
            "Put R3 R4 from the rack to meld 2: [R3 R4 R5 R6 R7 R8]",
        ],
    ),
    "equal melds, of which one grows": (
        "[R5 R6 R7] | [R5 R6 R7] + {R8} -> [R5 R6 R7 R8] | [R5 R6 R7] ; {}",
        ["Put R8 from the rack to meld 2: [R5 R6 R7 R8]"],
    ),
}


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_is_explained_in_few_steps(name: str) -> None:
    play, steps = TURNS[name]
    assert described(play) == steps


def test_groups_of_six_colors_are_cut_and_declared() -> None:
    ruleset = replace(SABRA, geometry_colors=6)
    assert described("[R5 B5 K5 O5 G5 P5] + {R5} -> [R5 B5 K5] | [R5 O5 G5 P5] ; {}", ruleset) == [
        "Cut meld 1: [R5 O5 G5 P5] and [B5 K5]",
        "Put R5 from the rack to the new meld [R5 B5 K5]",
    ]
    assert described("[R5 B5 K5] + {G5 J} -> group[R5 B5 K5 G5 J=P5] ; {}", ruleset) == [
        "Put G5 J from the rack to meld 1: group[R5 B5 K5 G5 J=P5]"
    ]


def test_the_joker_of_a_run_over_13_is_replaced() -> None:
    ruleset = replace(SABRA, run_wrap=RunWrap.CYCLIC)
    assert described("[R12 R13 J R2] + {R1 B1} -> [R12 R13 R1 R2 J] ; {B1}", ruleset) == [
        "Put R1 from the rack in the joker's place in meld 1: [R12 R13 R1 R2]; the joker is free",
        "Put the free joker to meld 1: [R12 R13 R1 R2 J]",
    ]


def test_the_pull_from_the_river_comes_first() -> None:
    play = play_of("[R3 R4 R5] + {B1} -> [R3 R4 R5 R6] ; {B1}")
    steps = explain(play.table_before, play.melds, pulled=parse_tiles("R6 K2"))
    assert [describe_step(step) for step in steps] == [
        "Pull R6 K2 from the River; R6 is to be played",
        "Put R6 from the rack to meld 1: [R3 R4 R5 R6]",
    ]


def test_steps_have_names_of_cards() -> None:
    play = play_of("[R4 J R6] + {R5 O11 O12} -> [R4 R5 R6] | [O11 O12 J] ; {}")
    assert [describe_step(step, Naming.CARDS) for step in explain(play.table_before, play.melds)] == [
        "Put 5H from the rack in the joker's place in meld 1: [4H 5H 6H]; the joker is free",
        "Lay JD QD from the rack for the new meld [JD QD *]: [JD QD]",
        "Put the free joker to the new meld [JD QD *]",
    ]
    with pytest.raises(NotationError, match="'G5' has no card"):
        describe_step(Pull(parse_tiles("G5")), Naming.CARDS)


def test_a_tile_that_has_left_the_table_cannot_be_explained() -> None:
    play = play_of("[R3 R4 R5 R6] + {} -> [R3 R4 R5] ; {}")
    with pytest.raises(ValueError, match="R6 has left the table"):
        explain(play.table_before, play.melds)


@pytest.mark.parametrize("place", [0, 1])
def test_of_like_melds_those_are_not_touched_that_the_turn_leaves(place: int) -> None:
    play = play_of("[R3 R4 R5] | [R3 R4 R5] + {R6} -> [R3 R4 R5] | [R3 R4 R5 R6] ; {}")
    steps = replayed(play.table_before, play.melds, untouched=(place,))
    assert [describe_step(step) for step in steps] == [f"Put R6 from the rack to meld {2 - place}: [R3 R4 R5 R6]"]


def test_nothing_done_is_no_step() -> None:
    play = play_of("[R3 R4 R5] + {} -> [R3 R4 R5] ; {}")
    assert explain(play.table_before, play.melds) == ()
    assert explain((), ()) == ()


# Random turns


def test_the_steps_of_every_legal_turn_of_the_conformance_cases_lead_to_its_table() -> None:
    plays = [(play_of_case(case, ruleset_of(case.ruleset)), case.ruleset) for case in load().turns]
    legal = [play for play, _ in plays if play.is_settled and not play.pulled]
    assert len(legal) > 50
    for play in legal:
        replayed(play.table_before, play.melds, play.ruleset)


def random_meld(tiles: Counter[Tile], ruleset: Ruleset, rng: random.Random) -> Meld | None:
    """Returns a random meld of tiles, with jokers for missing ones; None if the attempt failed."""
    color, value = rng.choice(COLORS[: ruleset.geometry_colors]), rng.randint(1, MAX_VALUE)
    if rng.random() < 0.5:
        wanted = [tile(other, value) for other in COLORS[: ruleset.geometry_colors]]
        wanted = rng.sample(wanted, rng.randint(3, len(wanted)))
        kind = MeldKind.GROUP
    else:
        wanted = [tile(color, (value + place - 1) % MAX_VALUE + 1) for place in range(rng.randint(3, 13))]
        kind = MeldKind.RUN
    jokers = [tiles[face] == 0 or rng.random() < 0.05 for face in wanted]
    laid = tuple(JOKER if is_joker else face for face, is_joker in zip(wanted, jokers, strict=True))
    stands_for = tuple(face for face, is_joker in zip(wanted, jokers, strict=True) if is_joker)
    if not Counter(laid) <= tiles:
        return None
    declared = stands_for if kind is MeldKind.GROUP and rng.random() < 0.5 else ()
    reading = read_meld(ProposedMeld(laid, kind, declared), ruleset)
    return reading if isinstance(reading, Meld) else None


def random_table(tiles: Counter[Tile], ruleset: Ruleset, rng: random.Random) -> Table:
    """Returns random melds of tiles, as many as are found in some attempts."""
    left, melds = Counter(tiles), []
    for _ in range(rng.choice((20, 100, 500))):
        meld = random_meld(left, ruleset, rng)
        if meld:
            melds.append(meld)
            left -= Counter(meld.tiles)
    return tuple(melds)


@pytest.mark.unmeasured
@pytest.mark.parametrize("wrap", RunWrap)
@pytest.mark.parametrize(("colors", "copies", "jokers"), [(4, 2, 2), (6, 2, 4), (4, 3, 4)])
def test_steps_lead_from_any_table_to_any_other(wrap: RunWrap, colors: int, copies: int, jokers: int) -> None:
    ruleset = replace(SABRA, run_wrap=wrap, geometry_colors=colors, geometry_copies=copies, geometry_jokers=jokers)
    rng = random.Random(f"{wrap} {colors} {copies}")
    kinds = set()
    for _ in range(6):
        everything = random_table(Counter(tile_set(colors, copies, jokers)), ruleset, rng)
        kept = tuple(meld for meld in everything if rng.random() < 0.2)
        after = tuple(meld for meld in everything if meld not in kept)
        before = random_table(Counter(t for meld in after for t in meld.tiles), ruleset, rng)
        before, after = (tuple(rng.sample(melds + kept, len(melds + kept))) for melds in (before, after))
        steps = replayed(before, after, ruleset)
        assert steps == explain(before, after, ruleset)
        kinds |= set(map(type, steps))
    assert kinds >= {Substitute, Take, Place, Extend}


@pytest.mark.unmeasured
@pytest.mark.parametrize("seed", range(4))
def test_the_steps_of_plays_of_random_games_lead_to_their_tables(seed: int) -> None:
    ruleset = random_ruleset(random.Random(seed))
    before: Table = ()
    plays = 0
    for change in random_changes(seed, 3, ruleset):
        game = change.applied.game
        after = melds_of(round_of(game).table) if game.round else ()
        if any(isinstance(event, TilesPlayed) for event in change.applied.events):
            steps = replayed(before, after, ruleset)
            tiles = sum(len(meld.tiles) for meld in after) - sum(len(meld.tiles) for meld in before)
            assert 0 < len(steps) <= 2 * tiles + 2 * len(before)
            plays += 1
        before = after
    assert plays


@pytest.mark.unmeasured
def test_the_best_turns_of_random_positions_are_explained() -> None:
    rng = random.Random("best turns")
    found = 0
    for _ in range(15):
        tiles = tile_set(4, 2, 2)
        table = random_table(Counter(rng.sample(tiles, 50)), SABRA, rng)
        left = Counter(tiles) - Counter(t for meld in table for t in meld.tiles)
        rack = in_order(rng.sample(list(left.elements()), 12))
        turn = best_turn(Situation(table, rack, has_melded=True, ruleset=SABRA)).turn
        if turn:
            steps = replayed(table, turn.table, untouched=turn.untouched)
            changed = {
                label.place - 1 for step in steps for label in changed_labels(step) if isinstance(label, TableMeld)
            }
            assert changed.isdisjoint(turn.untouched)
            found += 1
    assert found > 8
