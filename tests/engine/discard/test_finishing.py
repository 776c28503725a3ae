from itertools import chain

import pytest

from engine.discard.finishing import HandToJudge, JudgedHand, best_finish, judge_finish, judge_hand
from engine.discard.hands import FinishedHand, Standing
from engine.discard.melds import okey_of
from engine.discard.notation import format_hand, parse_hand
from engine.notation import format_tiles, parse_tile, parse_tiles
from engine.tiles import in_order
from engine.violations import Reason, Violation

ELEVEN = "K3 K4 K5 K6 O7 B7 R7 B9 B10 B11 B12"
MELDS = "[K3 K4 K5 K6] | [O7 B7 R7] | [B9 B10 B11 B12]"
PAIRS = "B1 B1 R2 R2 O5 O5 B6 B6 B7 B7 B8 B8 K9 K9"


def judged(
    tiles: str, indicator: str = "R5", discard: str = "", hand: str = "", *, one_high: bool = True
) -> JudgedHand:
    """Returns the judgement of a hand. The okey of the default indicator is R6."""
    found = judge_hand(
        HandToJudge(
            in_order(parse_tiles(tiles)),
            parse_tile(indicator),
            parse_tile(discard) if discard else None,
            parse_hand(hand),
            one_high=one_high,
        )
    )
    assert (found.finish is None) == bool(found.violations)
    assert (found.cost == 0) == (found.finish is None)
    if found.finish:
        laid = [*chain.from_iterable(found.finish.tiles), *([found.discard] if found.discard else [])]
        assert in_order(laid) == in_order(parse_tiles(tiles))
    return found


def reasons(found: JudgedHand) -> list[tuple[Reason, str, str]]:
    return [(one.reason, one.subject, format_tiles(one.tiles)) for one in found.violations]


def test_a_hand_of_14_is_judged_as_it_is() -> None:
    found = judged(f"{ELEVEN} R12 R13 R1")
    assert (found.discard, found.cost, found.lacks) == (None, 2, Standing(0, ()))
    assert found.finish
    assert not found.finish.is_pairs
    pairs = judged(PAIRS)
    assert pairs.cost == 4
    assert pairs.finish
    assert pairs.finish.is_pairs
    false = judged(f"{ELEVEN} R12 R13 O1")
    assert reasons(false) == [(Reason.FINISH_INVALID, "hand", "O1")]
    assert (false.discard, false.lacks) == (None, Standing(1, parse_tiles("O1")))


def test_a_1_after_13_is_an_option() -> None:
    hand = f"[R12 R13 R1] | {MELDS}"
    for laid in ("", hand):
        assert judged(f"{ELEVEN} R12 R13 R1", hand=laid).finish
        low = judged(f"{ELEVEN} R12 R13 R1", hand=laid, one_high=False)
        assert low.violations
        assert low.lacks.missing == 1
        fifteen = judged(f"{ELEVEN} R12 R13 R1 O3", discard="O3", hand=laid, one_high=False)
        assert fifteen.violations
    assert judged(f"{ELEVEN} R12 R13 R1 O3").discard == parse_tile("O3")
    assert judged(f"{ELEVEN} R12 R13 R1 O3", one_high=False).violations


@pytest.mark.parametrize(
    ("tiles", "discard", "cost"),
    [
        (f"{ELEVEN} R12 R13 R1 O3", "O3", 2),
        (f"{ELEVEN} R12 R6 R1 O3", "O3", 2),
        (f"{ELEVEN} R12 R13 R1 R6", "R6", 4),
        (f"{PAIRS} O3", "O3", 4),
        (f"{PAIRS} R6", "R6", 8),
        ("R1 R1 R2 R2 R3 R3 B5 B5 B6 B6 B7 B7 B8 B8 B9", "B9", 4),
    ],
)
def test_of_15_tiles_the_discard_is_that_of_the_dearest_finish(tiles: str, discard: str, cost: int) -> None:
    found = judged(tiles)
    assert (found.discard, found.cost, found.lacks) == (parse_tile(discard), cost, Standing(0, ()))
    best = best_finish(in_order(parse_tiles(tiles)), okey_of(parse_tile("R5")), one_high=True)
    assert best == (found.discard, found.finish)


def test_a_stated_discard_counts_whether_or_not_the_hand_is_then_finished() -> None:
    assert judged(f"{ELEVEN} R12 R6 R1 R11", discard="R11").cost == 2
    okey = judged(f"{ELEVEN} R12 R13 R1 R6", discard="R6")
    assert (okey.discard, okey.cost) == (parse_tile("R6"), 4)
    false = judged(f"{ELEVEN} R12 R13 R1 O3", discard="R1")
    assert reasons(false) == [(Reason.FINISH_INVALID, "hand", "O3")]
    assert (false.discard, false.lacks) == (parse_tile("R1"), Standing(1, parse_tiles("O3")))


def test_of_15_tiles_without_a_finish_one_more_than_is_missing_goes() -> None:
    found = judged(f"{ELEVEN} R12 R13 O1 K13")
    assert reasons(found) == [(Reason.FINISH_INVALID, "hand", "K13 O1")]
    assert (found.discard, found.lacks) == (None, Standing(1, parse_tiles("K13 O1")))
    assert best_finish(in_order(parse_tiles(f"{ELEVEN} R12 R13 O1 K13")), parse_tile("R6"), one_high=True) is None


@pytest.mark.parametrize(
    ("hand", "expected"),
    [
        (f"[R12 R6 R1] | {MELDS}", []),
        (f"[R6 R12 R1] | {MELDS}", [(Reason.FINISH_INVALID, "hand[0]", "R6 R12 R1")]),
        (MELDS, [(Reason.FINISH_INVALID, "hand", "R1 R6 R12")]),
        (
            f"[R11 R12 R6] | {MELDS}",
            [(Reason.TILE_NOT_IN_RACK, "hand", "R11"), (Reason.FINISH_INVALID, "hand", "R1")],
        ),
        (
            f"{MELDS} | [R12 R6] | [R1]",
            [(Reason.FINISH_INVALID, f"hand[{n}]", t) for n, t in ((3, "R12 R6"), (4, "R1"))],
        ),
    ],
)
def test_a_hand_as_the_player_lays_it(hand: str, expected: list[tuple[Reason, str, str]]) -> None:
    found = judged(f"{ELEVEN} R12 R6 R1", hand=hand)
    assert reasons(found) == expected
    assert found.lacks == Standing(0, ())
    if not expected:
        assert found.finish
        assert format_hand(found.finish.tiles) == hand


def test_pairs_as_the_player_lays_them() -> None:
    tiles = "B1 B1 R2 R2 O5 O5 B6 B6 B7 B7 F R6 K9 K9"
    pairs = "[B1 B1] | [R2 R2] | [O5 O5] | [B6 B6] | [B7 B7]"
    found = judged(tiles, hand=f"{pairs} | [F R6] | [K9 K9]")
    assert found.finish
    assert (found.finish.is_pairs, found.cost) == (True, 4)
    wrong = judged(tiles, hand=f"{pairs} | [F K9] | [R6 K9]")
    assert reasons(wrong) == [(Reason.FINISH_INVALID, "hand[5]", "F K9")]


def test_a_finish_in_a_game_has_wild_tiles() -> None:
    okey = parse_tile("R6")
    tiles = in_order(parse_tiles(f"{ELEVEN} R12 R6 R1"))
    found = judge_finish(tiles, (), okey, one_high=True)
    assert isinstance(found, FinishedHand)
    assert judge_finish(tiles, found.tiles, okey, one_high=True) == found
    other = judge_finish(in_order(parse_tiles(f"{ELEVEN} R12 R6 O1")), (), okey, one_high=True)
    assert isinstance(other, tuple)
    assert [one.reason for one in other] == [Reason.FINISH_INVALID]
    assert all(isinstance(one, Violation) and len(one.tiles) == 1 for one in other)
