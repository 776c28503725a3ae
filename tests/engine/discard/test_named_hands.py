"""Named hands: which tiles make one, against every way to lay them, and which lists of hands a ruleset may have."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import pytest

from engine.discard.hand_matching import MatchedHand, best_named_hand, judge_named_hand, melds_of
from engine.discard.hand_text import format_hands, parse_hands
from engine.discard.named_finish import JudgedNamedHand, judge_named_finish
from engine.discard.named_hands import KNOWN_HANDS, NamedHand
from engine.discard.notation import parse_hand
from engine.discard.presets import AMERICAN, INTERNATIONAL
from engine.discard.ruleset import problems
from engine.effort import Effort
from engine.notation import parse_tile, parse_tiles
from engine.options import OptionProblem
from engine.tiles import JOKER, NATURALS, Tile, in_order
from engine.violations import Reason, Violation
from oracles.okey_101 import readings

HIGH, LOW = KNOWN_HANDS
ANY = NamedHand("ANY", (1, 1, 1))


def made(tiles: str, hand: NamedHand) -> bool:
    return best_named_hand(in_order(parse_tiles(tiles)), (hand,)) is not None


@pytest.mark.parametrize(
    ("hand", "tiles", "expected"),
    [
        (HIGH, "R10 R11 R12 R13 R1 B10 B11 B12 B13 B1 K10 K11 K12 K13", True),
        (HIGH, "R10 R11 R12 R13 R1 B10 B11 B12 B13 J K10 K11 J K13", True),
        (HIGH, "R9 R10 R11 R12 R13 B10 B11 B12 B13 B1 K10 K11 K12 K13", False),
        (HIGH, "R10 R11 R12 R13 R1 R10 R11 R12 R13 R1 K10 K11 K12 K13", False),
        (HIGH, "R10 R11 R12 R13 B10 B11 B12 B13 K10 K11 K12 K13 O10 O11", False),
        (LOW, "R1 R2 R3 R4 R5 R6 R7 R8 R9 B3 B4 B5 B6 B7", True),
        (LOW, "R1 R2 R3 R4 R5 R6 R7 B3 B4 B5 B6 B7 B8 B9", True),
        (LOW, "R1 R2 R3 R7 R8 R9 R4 B3 B4 B5 B7 B8 B9 J", True),
        (LOW, "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 B4 B5 B6 B7", False),
        (LOW, "R1 R2 R3 R4 R5 R6 R7 B3 B4 B5 B6 K7 K8 K9", False),
        (LOW, "R1 R2 R3 R4 R5 R6 R7 R1 R2 R3 R4 R5 R6 R7", False),
        (LOW, "R1 R2 R3 R4 R5 R6 R7 R8 R9 B1 B2 B3 B4 B6", False),
        (replace(ANY, one_high=True), "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 B3 B4 B5", False),
        (replace(ANY, one_high=True), "R1 B1 K1 R4 R5 R6 R7 R8 R9 R10 R11 B3 B4 B5", True),
        (replace(ANY, one_high=True, highest=13), "R1 B1 K1 R4 R5 R6 R7 R8 R9 R10 R11 B3 B4 B5", False),
        (replace(ANY, one_high=True, lowest=4), "R1 B1 K1 R4 R5 R6 R7 R8 R9 R10 R11 B4 B5 B6", True),
        (ANY, "R11 R12 R13 R1 B1 K1 R4 R5 R6 R7 B3 B4 B5 B6", True),
        (ANY, "R11 R12 R13 R1 B7 K7 R4 R5 R6 R7 B3 B4 B5 B6", False),
        (replace(ANY, groups_min=4), "R1 B1 K1 R4 B4 K4 R7 B7 K7 O7 R9 B9 K9 O9", True),
        (replace(ANY, groups_min=4), "R1 B1 K1 R4 B4 K4 R7 B7 K7 O7 R9 R10 R11 R12", False),
        (replace(ANY, runs_min=1), "R1 B1 K1 R4 B4 K4 R7 B7 K7 O7 R9 B9 K9 O9", False),
        (replace(ANY, runs_max=0), "R1 B1 J R4 B4 K4 R7 B7 K7 O7 R9 B9 K9 J", True),
        (replace(ANY, runs_max=0, colors_min=4), "R1 B1 J R4 B4 K4 R7 B7 K7 J R9 B9 K9 R9", False),
        (replace(ANY, all_even=True), "R2 B2 K2 R4 B4 K4 R6 B6 K6 O6 R10 B10 K10 O10", True),
        (replace(ANY, all_even=True), "R2 B2 K2 R4 B4 K4 R7 B7 K7 O7 R10 B10 K10 O10", False),
        (replace(ANY, all_odd=True), "R1 B1 K1 R3 B3 K3 R7 B7 K7 O7 R13 B13 K13 O13", True),
        (replace(ANY, all_odd=True), "R1 B1 K1 R3 B3 K3 R7 B7 K7 O7 R12 B12 K12 O12", False),
        (replace(ANY, all_odd=True, one_high=True), "R1 B1 K1 R3 B3 K3 R7 B7 K7 O7 R13 B13 K13 O13", True),
        (replace(ANY, colors_min=4), "R1 B1 K1 R4 B4 K4 R7 B7 K7 J R9 B9 K9 J", True),
        (replace(ANY, colors_min=4), "R1 B1 K1 R4 B4 K4 R7 B7 K7 R9 R10 R11 R12 R13", False),
        (replace(ANY, colors_max=3), "R1 B1 K1 R4 B4 K4 R7 B7 K7 J R9 B9 K9 J", False),
        (replace(ANY, colors_max=3), "R1 B1 K1 R4 B4 K4 R7 B7 K7 R9 R10 R11 R12 R13", True),
        (replace(ANY, run_colors_differ=True), "R1 R2 R3 R4 R5 R6 R7 B1 B2 B3 B4 B5 B6 B7", True),
        (replace(ANY, run_colors_differ=True), "R1 R2 R3 R4 R5 R6 R8 R9 R10 B4 B5 B6 B7 B8", False),
    ],
)
def test_which_tiles_make_a_hand(hand: NamedHand, tiles: str, expected: bool) -> None:
    assert made(tiles, hand) is expected


@pytest.mark.parametrize(
    ("laid", "hand", "expected"),
    [
        ("[R4 J J] | [R7 R8 R9] | [B1 B2 B3 B4] | [K1 K2 K3 K4]", replace(ANY, runs_min=4), True),
        ("[R4 J J] | [R7 R8 R9] | [B1 B2 B3 B4] | [K1 K2 K3 K4]", replace(ANY, groups_min=1), True),
        ("[R12 J J] | [R7 R8 R9] | [B1 B2 B3 B4] | [K1 K2 K3 K4]", replace(ANY, groups_max=0), False),
        ("[R7 R8 R9] | [B1 B2 B3 B4] | [K1 K2 K3 K4] | [R4 R3 R5 R6]", ANY, False),
        ("[R3 R4 R5 R6 R7 R8 R9] | [B1 B2 B3 B4] | [K1 K2 K3]", replace(ANY, runs_min=4), False),
        ("[R3 R4 R5] | [R6 R7 R8 R9] | [B1 B2 B3 B4] | [K1 K2 K3]", replace(ANY, runs_min=4), True),
        ("[R3 R4 R5] | [R6 R7 R8 R9] | [B1 B2 B3 B4] | [K1 K2 K3]", replace(ANY, lowest=2), False),
        ("[R3 R4 R5] | [R6 R7 R8 R9] | [B5 K5 O5] | [B1 K1 O1 R1]", replace(ANY, one_high=True, lowest=3), True),
        ("[R3 R4 R5] | [R6 R7 R8 R9] | [B5 K5 O5] | [B1 K1 O1 R1]", replace(ANY, lowest=3), False),
    ],
)
def test_a_hand_counts_as_it_is_laid(laid: str, hand: NamedHand, expected: bool) -> None:
    parts = parse_hand(laid)
    judged = judge_named_hand(in_order(t for part in parts for t in part), parts, (hand,))
    assert isinstance(judged, tuple) is not expected
    if isinstance(judged, tuple):
        assert [violation.reason for violation in judged] == [Reason.HAND_NOT_MATCHED]


def arrangements(left: tuple[Tile, ...]) -> Iterator[tuple[tuple[str, frozenset[int], frozenset[int]], ...]]:
    """Yields every way to lay tiles in runs and groups: kinds, colors and values of the melds. Slow and simple."""
    if not left:
        yield ()
        return
    first, seen = left[0], set()
    for size in range(3, min(len(left), 7) + 1):
        for others in set(permutations(left[1:], size - 1)):
            chosen = tuple(sorted((first, *others)))
            if chosen in seen:
                continue
            seen.add(chosen)
            rest = list(left)
            for t in chosen:
                rest.remove(t)
            shapes = {
                (kind, frozenset({value} if kind == "run" else places), frozenset(places if kind == "run" else {value}))
                for order in set(permutations(chosen))
                for (kind, value), places in readings(order, JOKER, one_high=False)
            }
            for shape in shapes:
                yield from ((shape, *more) for more in arrangements(tuple(rest)))


@pytest.mark.parametrize("seed", range(30))
def test_the_search_agrees_with_every_way_to_lay_few_tiles(seed: int) -> None:
    rng = random.Random(seed)
    near = [t for t in NATURALS if (t - 1) % 13 < 4 and (t - 1) // 13 < 3]
    tiles = in_order((*rng.sample(near * 2, 5), *(JOKER,) * rng.randint(0, 1)))
    ways = list(arrangements(tiles))
    hand = replace(
        ANY,
        runs_min=rng.randint(0, 1),
        groups_min=rng.randint(0, 1),
        colors_max=rng.choice((2, 3, 4)),
        colors_min=rng.choice((1, 2)),
        lowest=rng.choice((1, 1, 2)),
        highest=rng.choice((3, 4, 14)),
        run_colors_differ=rng.random() < 0.5,
    )

    def meets(way: tuple[tuple[str, frozenset[int], frozenset[int]], ...]) -> bool:
        runs = [colors for kind, colors, _ in way if kind == "run"]
        colors = frozenset().union(*(colors for _, colors, _ in way))
        values = [value + 1 for _, _, values in way for value in values]
        return (
            len(runs) >= hand.runs_min
            and len(way) - len(runs) >= hand.groups_min
            and hand.colors_min <= len(colors) <= hand.colors_max
            and min(values) >= hand.lowest
            and max(values) <= hand.highest
            and (not hand.run_colors_differ or len(set(runs)) == len(runs))
        )

    assert bool(melds_of(tiles, hand, Effort(10**6))) == any(map(meets, ways))


# Of 15 tiles


def test_of_15_tiles_the_discard_is_chosen_that_scores_the_most() -> None:
    tiles = in_order(parse_tiles("R10 R11 R12 R13 R1 B10 B11 B12 B13 B1 K10 K11 K12 K13 J"))
    judged = judge_named_finish(tiles, None, (), KNOWN_HANDS)
    assert (judged.discard, judged.points) == (JOKER, 600)
    other = judge_named_finish(tiles, parse_tile("K13"), (), KNOWN_HANDS)
    assert (other.discard, other.points) == (parse_tile("K13"), 250)
    none = judge_named_finish((*tiles[:-1], parse_tile("O9")), parse_tile("R10"), (), KNOWN_HANDS)
    assert (none.hand, none.points, [one.reason for one in none.violations]) == (None, 0, [Reason.HAND_NOT_MATCHED])
    assert not judge_named_finish(tiles[1:], None, (), KNOWN_HANDS[1:]).hand
    loose = judge_named_finish((*tiles[:-2], *parse_tiles("O1 O4")), None, (), KNOWN_HANDS)
    assert loose == JudgedNamedHand((Violation(Reason.HAND_NOT_MATCHED, "hand"),), None, None, 0)


# Lists of hands


@pytest.mark.parametrize("hands", [KNOWN_HANDS, (ANY,), (replace(ANY, highest=9, all_odd=True), HIGH)])
def test_hands_are_read_from_their_text_as_they_are_written(hands: tuple[NamedHand, ...]) -> None:
    assert parse_hands(format_hands(hands)) == hands


@pytest.mark.parametrize("text", ["", "any:1/2/3:", "ANY:1/2:", "ANY:1/2/3:lowest", "ANY:1/2/3:name=4", "ANY:1/2/3:;"])
def test_what_is_no_text_of_hands_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        parse_hands(text)


@pytest.mark.parametrize(
    "hand",
    [
        replace(ANY, name=""),
        replace(ANY, name="A" * 41),
        replace(ANY, name="two words"),
        replace(ANY, scores=(1, 2, 1001)),
        replace(ANY, scores=(1, -2, 3)),
        replace(ANY, runs_min=3, runs_max=2),
        replace(ANY, runs_max=5),
        replace(ANY, groups_min=3, groups_max=2),
        replace(ANY, colors_min=0),
        replace(ANY, colors_max=5),
        replace(ANY, lowest=0),
        replace(ANY, lowest=9, highest=8),
        replace(ANY, highest=15),
        replace(ANY, all_even=True, all_odd=True),
    ],
)
def test_a_hand_out_of_range_is_a_problem_of_the_ruleset(hand: NamedHand) -> None:
    assert problems(replace(INTERNATIONAL, hands=(HIGH, hand))) == (
        OptionProblem(Reason.OPTION_VALUE_INVALID, ("hands",), hand.name),
    )


def test_a_ruleset_has_at_most_64_hands_of_different_names() -> None:
    hands = tuple(replace(ANY, name=f"H{number}") for number in range(65))
    assert problems(replace(INTERNATIONAL, hands=hands[1:])) == ()
    assert problems(replace(INTERNATIONAL, hands=hands)) == (
        OptionProblem(Reason.OPTION_VALUE_INVALID, ("hands",), "65"),
    )
    assert len(problems(replace(INTERNATIONAL, hands=(ANY, ANY)))) == 2


def test_hands_mean_nothing_without_concealed_wins() -> None:
    assert problems(replace(AMERICAN, hands=(ANY,))) == (
        OptionProblem(Reason.OPTIONS_CONFLICT, ("hands", "concealed_wins"), "1"),
    )


def test_a_long_list_of_hands_is_searched_for_a_while_and_a_hand_as_laid_is_judged() -> None:
    hands = tuple(NamedHand(f"H{number}", (number,) * 3, runs_min=4, run_colors_differ=True) for number in range(64))
    tiles = in_order(parse_tiles("R1 R2 R3 R4 R5 R6 B1 B2 B3 B4 B5 B6 K6 J J"))
    assert judge_named_finish(tiles, None, (), hands).hand is None
    parts = parse_hand("[R1 R2 R3] | [B1 B2 B3] | [K1 K2 K3] | [O1 O2 O3 O4 O5]")
    tiles = in_order((*(t for part in parts for t in part), *parse_tiles("J")))
    laid = judge_named_finish(tiles, parse_tiles("J")[0], parts, hands)
    assert laid.hand == MatchedHand("H63", parts, 63)
