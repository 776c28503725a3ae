"""The jokers of Rummikub Twist: melds and turns beside those of an oracle, the solver, and bots."""

import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from engine.actions import StartGame
from engine.deal import Shuffle
from engine.effort import Budget
from engine.melding.actions import PlayTiles
from engine.melding.analysis import Existence, Situation
from engine.melding.bots import choose_action
from engine.melding.events import TilesPlayed
from engine.melding.fast.fast_judge import FastJudges
from engine.melding.fast.fast_play import PlayerState
from engine.melding.fast.read_melds import melds_by_identity
from engine.melding.game import round_of
from engine.melding.melds import Meld, MeldKind, ProposedMeld, as_proposed, read_meld
from engine.melding.notation import format_meld, format_table, parse_meld, parse_melds
from engine.melding.play import Play
from engine.melding.presets import PRESETS
from engine.melding.rules import judge
from engine.melding.ruleset import (
    InitialMeldCount,
    InitialMeldRequiredKind,
    Preset,
    Ruleset,
    TwistColorChangeAtEnd,
    with_options,
)
from engine.melding.scoring import rack_value
from engine.melding.solver import Count, Objective, arrange, best_turn, count_best_turns, has_turn
from engine.melding.table import read_melds
from engine.notation import Naming, NotationError, format_tile, format_tiles, parse_tile, parse_tiles
from engine.seats import HOST, BotLevel
from engine.sight import see
from engine.tiles import COLOR_CHANGE, JOKERS, MIRROR, SPECIAL_JOKERS, Tile, in_order, naturals, without
from engine.violations import Reason
from oracles import brute_force
from oracles.brute_force import TooManyPlaysError, arrangement_fault, small_situation
from oracles.twist_melds import PLAIN, Options, is_legal, melds_up_to, readings
from support.positions import do, game_at, is_a, lobby, only_reason
from support.soak import few_of
from support.twist_play import random_meld, random_turn

TWIST = PRESETS[Preset.TWIST]
BY_OPTIONS = {
    PLAIN: TWIST,
    Options(change_at_end=True): replace(TWIST, twist_color_change_at_end=TwistColorChangeAtEnd.ALLOWED),
    Options(half_min=1): replace(TWIST, twist_mirror_half_min=1),
    Options(colors=6): replace(TWIST, geometry_colors=6),
}
KINDS = {None: ("RUN", "GROUP"), MeldKind.RUN: ("RUN",), MeldKind.GROUP: ("GROUP",)}


def meld(text: str, ruleset: Ruleset = TWIST) -> Meld:
    return is_a(read_meld(parse_meld(text), ruleset), Meld)


def table(text: str) -> tuple[Meld, ...]:
    return tuple(is_a(read_meld(sent, TWIST), Meld) for sent in parse_melds(text))


# Melds


def check_reading(tiles: tuple[Tile, ...], options: Options) -> bool:
    """Compares the readings of tiles by each stated kind with the oracle's. Returns whether they are a meld."""
    expected = readings(tiles, options)
    for kind, allowed in KINDS.items():
        found = read_meld(ProposedMeld(tiles, kind), BY_OPTIONS[options])
        wanted = next((one for one in allowed if one in expected), None)
        about = f"{format_tiles(tiles)} as {kind}: {found}"
        assert isinstance(found, Meld) == (wanted is not None), about
        if isinstance(found, Meld) and wanted:
            assert found.kind.name == wanted, about
            assert (found.points, found.joker_faces) == (expected[wanted].points, expected[wanted].faces), about
    return bool(expected)


@pytest.mark.unmeasured
@pytest.mark.slow
@pytest.mark.parametrize("options", BY_OPTIONS, ids=str)
@pytest.mark.parametrize("seed", few_of(range(30), 1))
def test_melds_and_near_misses_are_read_as_by_the_oracle(seed: int, options: Options) -> None:
    rng = random.Random(seed)
    faces = [*naturals(options.colors), *sorted(JOKERS)]
    are_melds = []
    for _ in range(150):
        tiles = random_meld(rng, options)
        are_melds.append(check_reading(tiles, options))
        other = list(tiles)
        other[rng.randrange(len(other))] = rng.choice(faces)
        swapped = rng.sample(tiles, len(tiles)) if rng.random() < 0.3 else other
        check_reading(tuple(swapped), options)
    assert sum(are_melds) > 100


@pytest.mark.unmeasured
@pytest.mark.slow
@pytest.mark.parametrize(("most", "least_special"), [(6, 13_000), pytest.param(7, 38_000, marks=pytest.mark.soak)])
def test_every_meld_of_a_few_tiles_is_read(most: int, least_special: int) -> None:
    special = 0
    for tiles, kind, points in melds_up_to(most):
        found = read_meld(ProposedMeld(tiles, MeldKind[kind]), TWIST)
        assert isinstance(found, Meld), format_tiles(tiles)
        assert found.points == points, format_tiles(tiles)
        special += not SPECIAL_JOKERS.isdisjoint(tiles)
    assert special > least_special


@pytest.mark.unmeasured
@pytest.mark.slow
@pytest.mark.parametrize("first", few_of([Tile(1), Tile(5), Tile(12), *sorted(JOKERS)], 2), ids=format_tile)
def test_three_tiles_are_read_as_by_the_oracle(first: Tile) -> None:
    for others in product((*naturals(3), *sorted(JOKERS)), repeat=2):
        if not SPECIAL_JOKERS.isdisjoint((first, *others)):
            check_reading((first, *others), PLAIN)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[R6 B7 C K9]", "RUN_COLOR_MIX"),
        ("[R6 R7 C R9]", "COLOR_CHANGE_INVALID"),
        ("[R6 C B8 C B10]", "COLOR_CHANGE_INVALID"),
        ("[R8 M R8 M R8]", "JOKERS_TOO_MANY"),
        ("run[R7 B7 C]", "RUN_COLOR_MIX"),
        ("group[R7 B7 C]", "COLOR_CHANGE_INVALID"),
        ("group[R6 R7 C B9]", "MELD_KIND_MISMATCH"),
        ("group[R6 R7 C B10]", "GROUP_VALUE_MISMATCH"),
        ("[R9 D R7]", "RUN_NOT_ASCENDING"),
        ("[R5 R5 D]", "GROUP_COLOR_REPEAT"),
        ("[M R7 R8 R9]", "MIRROR_HALF_TOO_SHORT"),
        ("[R7 R8 M R8 C]", "MIRROR_NOT_SYMMETRIC"),
        ("[R7 B8 M B8 R7]", "RUN_COLOR_MIX"),
        ("[R11 R12 D M D R12 R11]", "RUN_JOKER_OUT_OF_RANGE"),
        ("[R3 F D]", "TILE_UNKNOWN"),
    ],
)
def test_what_is_wrong_with_a_meld_is_named(text: str, reason: str) -> None:
    found = read_meld(parse_meld(text), TWIST)
    assert not isinstance(found, Meld)
    assert [one.name for one in found.reasons] == [reason]


def test_the_stated_kind_of_a_mirror_decides() -> None:
    assert meld("group[K7 D M D K7]").points == 42
    assert meld("run[K7 D M D K7]").points == 48


@pytest.mark.parametrize(
    ("text", "declared", "is_meld"),
    [
        ("[R2 D R5]", "R3 R4", True),
        ("[R2 D R5]", "R3 R5", False),
        ("[R2 D R5]", "R3", False),
        ("[K7 J M J K7]", "K8 K8", True),
        ("[R6 C J J]", "O7 B8 B9", True),
    ],
)
def test_declared_faces_must_be_possible(text: str, declared: str, is_meld: bool) -> None:
    found = read_meld(replace(parse_meld(text), declared=parse_tiles(declared)), TWIST)
    reasons = [] if isinstance(found, Meld) else [one.name for one in found.reasons]
    assert reasons == ([] if is_meld else ["JOKER_DECLARATION_MISMATCH"])


@pytest.mark.parametrize("seed", range(3))
def test_a_meld_as_text_is_read_as_the_same_meld(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        tiles = random_meld(rng, PLAIN)
        for kind in MeldKind:
            found = read_meld(ProposedMeld(tiles, kind), TWIST)
            if isinstance(found, Meld):
                assert read_meld(parse_meld(format_meld(found, ruleset=TWIST)), TWIST) == found
                assert read_meld(as_proposed(found, TWIST), TWIST) == found


def test_special_jokers_have_letters_and_no_cards() -> None:
    assert format_tiles(parse_tiles("d M c")) == "D M C"
    with pytest.raises(NotationError, match="'D' has no card"):
        format_tile(parse_tile("D"), Naming.CARDS)


# Tables


def test_a_meld_of_the_table_keeps_its_kind() -> None:
    before = (meld("group[K7 D M D K7]"),)
    assert read_melds(parse_melds("[K7 D M D K7]"), before, TWIST) == before


def test_a_mirror_of_a_group_may_be_sent_in_another_order() -> None:
    before = (meld("[K7 J M R7 J]"),)
    (read,) = read_melds(parse_melds("[J R7 M J K7]"), before, TWIST)
    assert is_a(read, Meld).points == 28
    after, rack = parse_melds("[J R7 M J K7] | [B9 B10 B11]"), parse_tiles("B9 B10 B11")
    assert not judge(Play(before, after, rack, has_melded=False, ruleset=TWIST)).violations


@pytest.mark.unmeasured
@pytest.mark.slow
@pytest.mark.parametrize("seed", few_of(range(40), 3))
def test_turns_are_judged_as_by_the_oracle(seed: int) -> None:
    rng, judges = random.Random(seed), FastJudges[Ruleset, Meld, ProposedMeld](lambda rules: rules, melds_by_identity)
    legal = 0
    for _ in range(250):
        turn = random_turn(rng, PLAIN)
        before = tuple(is_a(read_meld(ProposedMeld(tiles), TWIST), Meld) for tiles in turn.before)
        after = tuple(map(ProposedMeld, turn.after))
        player = PlayerState(in_order(turn.rack), turn.has_melded)
        judged = judge(player.plain_play(before, after, TWIST))
        assert bool(judged.violations) != is_legal(turn), (turn, judged.violations)
        fast = judges.of(TWIST).judge(before, after, player)
        if fast is not None:
            same = (judged.violations, judged.tiles_played, judged.points, judged.rack_left)
            assert (fast.violations, fast.tiles_played, fast.points, fast.rack_left) == same, turn
            assert fast.violations or judges.of(TWIST).new_table(before, after) == judged.table
        legal += not judged.violations
    assert legal > 50


@pytest.mark.parametrize(
    ("before", "rack", "after", "points"),
    [
        (".", "D B8 B9", "[D B8 B9]", 30),
        (".", "R6 R7 C B9", "[R6 R7 C B9]", 30),
        (".", "K7 K7 R7 R7 M", "[K7 R7 M R7 K7]", 28),
        ("[R2 D R5]", "R3 R4 B8 J", "[R2 R3 R4 R5] | [D B8 J]", 3 + 4 + 8 + 9),
    ],
)
def test_the_points_of_a_play_count_what_its_jokers_stand_for(before: str, rack: str, after: str, points: int) -> None:
    hand = in_order(parse_tiles(rack))
    played = judge(Play(table(before), parse_melds(after), hand, has_melded=True, ruleset=TWIST))
    assert not played.violations
    assert played.points == points


# Games


def test_a_game_has_two_of_each_joker() -> None:
    assert Counter(TWIST.tiles(4)) == Counter([*naturals(4), *JOKERS] * 2)
    assert len(TWIST.tiles(4)) == 112


def test_a_special_joker_counts_as_a_joker_in_the_start_draw() -> None:
    tiles = TWIST.tiles(2)
    draws = parse_tiles("D R9 C M R10")
    order = (*draws, *without(tiles, draws))
    game = do(lobby("Ada", "Ben", ruleset=TWIST), StartGame(HOST, Shuffle(order, order))).game
    assert round_of(game).turn.seat == 2


def test_each_joker_costs_its_penalty_on_a_rack() -> None:
    assert rack_value(parse_tiles("R3 J D M C"), TWIST) == 3 + 4 * 30


def test_a_special_joker_stays_on_the_table() -> None:
    game = game_at("[R6 R7 M R7 R6] / 1*{R8 R8} 2*{K13} / {B9} / 1", TWIST)
    assert only_reason(game, PlayTiles(1, parse_melds("[R6 R7 R8] | [R6 R7 R8]"))) is Reason.JOKER_TO_RACK


# The solver


def situation(text: str, rack: str, *, has_melded: bool = True) -> Situation:
    return Situation(table(text), in_order(parse_tiles(rack)), has_melded, TWIST)


@pytest.mark.parametrize(
    ("text", "rack", "exists"),
    [
        ("[R3 R4 R5]", "R6 B1", "YES"),
        ("[R3 R4 R5]", "K9 B1", "NO"),
        ("[R3 R4 R5]", "K9 D", "YES"),
        ("[R3 R4 R5] | [R2 D R5]", "K9", "NO"),
        ("[R3 B3 K3 O3]", "B9 D", "NO"),
        ("[R3 R4 R5]", "K9 M", "UNKNOWN"),
        ("[R3 R4 R5] | [B7 B8 C K10]", "K9 D", "UNKNOWN"),
        ("[R2 D R5] | [R3 R4 R5]", "R6 M", "YES"),
    ],
)
def test_the_solver_never_denies_a_play_with_special_jokers(text: str, rack: str, exists: str) -> None:
    asked = situation(text, rack)
    assert has_turn(asked) is Existence[exists]
    found = best_turn(asked)
    assert (found.turn is not None) == (exists == "YES")
    there = (*asked.rack, *(t for m in asked.table for t in m.tiles))
    assert found.is_proven == {MIRROR, COLOR_CHANGE}.isdisjoint(there)


@pytest.mark.parametrize(
    ("text", "rack", "played", "after"),
    [
        ("[R2 D R5]", "R3 R4 B8 B9", "R3 R4 B8 B9", "[R2 R3 R4 R5] | [B8 B9 D]"),
        ("[R9 D R12] | [K9 K10 K11]", "R11 B9 O9 O1", "R11 B9 O9", "[K9 K10 K11] | [R9 B9 O9] | [D R11 R12]"),
        (".", "R3 R3 B3 B3 J D", "R3 R3 B3 B3 J D", "[R3 B3 J] | [R3 B3 D]"),
        (".", "R10 R12 R13 D J", "R10 R12 R13 J D", "[D R10 J R12 R13]"),
    ],
)
def test_a_double_joker_goes_where_the_most_tiles_are_played(text: str, rack: str, played: str, after: str) -> None:
    found = best_turn(situation(text, rack))
    assert found.is_proven
    assert found.turn
    assert (format_tiles(found.turn.tiles), format_table(found.turn.table, ruleset=TWIST)) == (played, after)


@pytest.mark.parametrize(
    ("options", "rack", "played"),
    [
        ({}, "R11 R12 D", "R11 R12 D"),
        ({}, "R3 R4 D", None),
        ({"initial_meld_count": InitialMeldCount.SINGLE_MELD}, "B8 B9 D R1 R2 R3", "B8 B9 D"),
        ({"initial_meld_required_kind": InitialMeldRequiredKind.RUN}, "R13 B13 D B1", None),
        ({"initial_meld_required_kind": InitialMeldRequiredKind.RUN}, "R13 R12 D B1", "R12 R13 D"),
    ],
)
def test_an_initial_meld_counts_both_places_of_a_double_joker(
    options: dict[str, Any], rack: str, played: str | None
) -> None:
    asked = replace(situation(".", rack, has_melded=False), ruleset=with_options(TWIST, options))
    found = best_turn(asked)
    assert found.is_proven
    assert (found.turn and format_tiles(found.turn.tiles)) == played
    assert has_turn(asked) is (Existence.YES if played else Existence.NO)


def test_one_meld_at_the_threshold_is_not_proven_with_double_jokers() -> None:
    options = {"initial_meld_count": InitialMeldCount.ONE_MELD_REACHES_THRESHOLD}
    ruleset = with_options(TWIST, options)
    asked = replace(situation(".", "R3 R4 D B10 B11 B12", has_melded=False), ruleset=ruleset)
    found = best_turn(asked)
    assert found.turn
    assert (format_tiles(found.turn.tiles), found.is_proven) == ("B10 B11 B12", False)
    assert best_turn(replace(asked, has_melded=True)).turn is not None


def test_a_turn_without_double_jokers_is_found_when_the_budget_is_spent() -> None:
    asked = situation("[K1 D K4] | [R6 B6 K6 O6] | [R7 B7 K7 O7]", "R8 O1")
    found = best_turn(asked, budget=Budget(nodes=60))
    assert found.turn
    assert (format_tiles(found.turn.tiles), found.turn.untouched, found.is_proven) == ("R8", (0,), False)
    assert best_turn(asked).is_proven
    few = best_turn(asked, budget=Budget(change_nodes=1))
    assert few.turn
    assert (few.turn.untouched, few.is_proven, few.is_least_change) == ((0,), True, False)


def test_a_double_joker_that_costs_nothing_on_the_rack_may_be_played_alone() -> None:
    ruleset = with_options(TWIST, {"score_joker_penalty": 0})
    asked = replace(situation("[R3 R4 R5]", "K9 D"), ruleset=ruleset)
    found = best_turn(asked, Objective.HIGHEST_VALUE)
    assert found.turn
    assert (format_tiles(found.turn.tiles), found.is_proven) == ("D", True)


def test_the_best_turns_with_double_jokers_are_all_counted() -> None:
    count = count_best_turns(situation("[R1 B1 K1 O1]", "R2 K4 O2 D"), Objective.HIGHEST_VALUE)
    assert count == Count(2, is_exact=True)  # R2 O2 D, or K4 D: 34 both


def test_more_than_six_jokers_are_not_searched() -> None:
    assert arrange(parse_tiles("R2 R3 B4 J J J D D D"), TWIST).exists is Existence.YES
    assert arrange(parse_tiles("R2 R3 B4 J J J J D D D"), TWIST).exists is Existence.UNKNOWN
    assert arrange(parse_tiles("R2 R3 B4 J J J J J J J"), TWIST).exists is Existence.YES


def twisted(rng: random.Random) -> Ruleset:
    """Returns rules of Twist, mostly the preset."""
    options: dict[str, Any] = {}
    if rng.random() < 0.2:
        options["geometry_colors"] = 6
    if rng.random() < 0.3:
        options["geometry_jokers"] = rng.choice((3, 4))
    if rng.random() < 0.5:
        options["initial_meld_threshold"] = rng.choice((0, 20, 40, 50))
        options["initial_meld_required_kind"] = rng.choice(list(InitialMeldRequiredKind))
        options["initial_meld_count"] = rng.choice((InitialMeldCount.ONE_OR_MORE, InitialMeldCount.SINGLE_MELD))
    if rng.random() < 0.2:
        options["score_joker_penalty"] = rng.choice((0, 20))
    return with_options(TWIST, options)


@pytest.mark.unmeasured
@pytest.mark.slow
@pytest.mark.parametrize("seed", few_of(range(60), 1))
def test_the_solver_agrees_with_brute_force_on_double_jokers(seed: int) -> None:
    rng, proven = random.Random(seed), 0
    while proven < 15:
        asked, objective = small_situation(rng, twisted(rng)), rng.choice(tuple(Objective))
        with suppress(TooManyPlaysError):
            compared = brute_force.compare(asked, objective, Budget())
            assert not compared.fault, compared.fault
            assert compared.best.is_proven, brute_force.text_of(asked, objective)
            assert compared.existence is not Existence.UNKNOWN, brute_force.text_of(asked, objective)
            lying = in_order(t for one in asked.table for t in one.tiles)
            for tiles in (in_order((*lying, *asked.rack[:1])), asked.rack):
                assert not arrangement_fault(tiles, asked.ruleset, Budget())
            proven += 1


def test_the_solver_runs_out_of_budget_beside_special_jokers() -> None:
    asked = situation("[R3 R4 R5] | [B3 B4 B5]", "D O3 K3 O4 K4")
    assert has_turn(asked, Budget(nodes=0)) is Existence.UNKNOWN


def test_melds_with_special_jokers_stay_in_the_solver_s_turn() -> None:
    asked = situation("[R2 D R5] | [R3 R4 R5] | [B7 B8 C K10] | [K1 K2 K3]", "R6 M")
    turn = best_turn(asked, Objective.HIGHEST_VALUE).turn
    assert turn is not None
    assert turn.untouched == (0, 2, 3)
    assert format_table(turn.table, ruleset=TWIST) == "[R2 D R5] | [B7 B8 C K10] | [K1 K2 K3] | [R3 R4 R5 R6]"
    assert turn.tiles == parse_tiles("R6")


def test_what_needs_all_turns_is_not_known_with_special_jokers() -> None:
    assert arrange(parse_tiles("R7 K7 M K7 R7"), TWIST).exists is Existence.UNKNOWN
    assert arrange(parse_tiles("R2 D R5"), TWIST).exists is Existence.YES
    assert arrange(parse_tiles("R2 D B5"), TWIST).exists is Existence.NO
    count = count_best_turns(situation("[R3 R4 R5]", "R6 C"))
    assert (count.number, count.is_exact) == (0, False)
    assert count_best_turns(situation("[R3 R4 R5]", "R6 D")) == Count(1, is_exact=True)
    assert count_best_turns(situation("[R3 R4 R5]", "R6")).number == 1


# Bots


@pytest.mark.parametrize(
    ("position", "played"),
    [
        (". / 1*{R2 D R5} 2*{K13} / {B9} / 1", "R2 R5 D"),
        (". / 1{D B8 B9} 2*{K13} / {B9} / 1", "B8 B9 D"),
        (". / 1*{B3 R3 D} 2*{K13} / {B9} / 1", "R3 B3 D"),
        (". / 1*{J R3 D} 2*{K13} / {B9} / 1", "R3 J D"),
        (". / 1*{B3 R3 D M} 2*{K13} / {B9} / 1", "R3 B3 D"),
        (". / 1*{J R3 D M} 2*{K13} / {B9} / 1", "R3 J D"),
        (". / 1*{R6 R7 C B9} 2*{K13} / {B9} / 1", "R6 R7 B9 C"),
        (". / 1*{K7 K7 R7 R7 M} 2*{K13} / {B9} / 1", "R7 R7 K7 K7 M"),
        (". / 1*{K7 K7 K8 K8 M} 2*{K13} / {B9} / 1", "K7 K7 K8 K8 M"),
        (". / 1*{B2 B2 K7 K7 K8 K8 M} 2*{K13} / {B9} / 1", "K7 K7 K8 K8 M"),
        (". / 1*{R7 R7 R9 R9 K7 K7 M} 2*{K13} / {B9} / 1", "R7 R7 K7 K7 M"),
        (". / 1*{R1 R4 D} 2*{K13} / {B9} / 1", "R1 R4 D"),
        (". / 1*{R11 B13 C} 2*{K13} / {B9} / 1", "R11 B13 C"),
    ],
)
def test_bots_lay_special_jokers_of_their_rack(position: str, played: str) -> None:
    game = game_at(position, TWIST)
    events = do(game, choose_action(see(game, 1), BotLevel.MASTER, Budget(nodes=800))).events
    assert [format_tiles(one.tiles) for one in events if isinstance(one, TilesPlayed)] == [played]


@pytest.mark.parametrize(
    ("position", "after"),
    [
        (
            "[R3 R4 R5] | [B9 B10 B11] | [R3 R4 R5] / 1*{M O1} 2*{K13} / {B9} / 1",
            "[B9 B10 B11] | [R3 R4 R5 M R5 R4 R3]",
        ),
        ("[R3 R4 R5] | [B7 B8 B9] / 1*{C O1} 2*{K13} / {B9} / 1", "[R3 R4 R5 C B7 B8 B9]"),
        ("[B7 B8 B9] | [R3 R4 R5] / 1*{C O1} 2*{K13} / {B9} / 1", "[R3 R4 R5 C B7 B8 B9]"),
        ("[R3 R4 R5] | [B7 B8 B9] | [J B10 B11] / 1*{D} 2*{K13} / {B9} / 1", "[R3 R4 R5 D J] | [B7 B8 B9 B10 B11]"),
        ("[R3 R4 R5] | [R7 R8 R9] | [J K4 K5] | [B3 K3 O3] / 1*{C O1} 2*{K13} / {B9} / 1", None),
        ("[J R4 R5] | [B7 B8 B9] / 1*{C O1} 2*{K13} / {B9} / 1", None),
        ("[R3 R4 R5] | [B7 B8 B9] / 1*{O2 O1} 2*{K13} / {B9} / 1", None),
        ("[R3 R4 R5] | [B8 B9 B10] / 1*{C O1} 2*{K13} / {B9} / 1", None),
    ],
)
def test_bots_join_melds_by_special_jokers(position: str, after: str | None) -> None:
    game = game_at(position, TWIST)
    events = do(game, choose_action(see(game, 1), BotLevel.MASTER, Budget(nodes=800))).events
    tables = [format_table(one.table, ruleset=TWIST) for one in events if isinstance(one, TilesPlayed)]
    assert tables == ([after] if after else [])
