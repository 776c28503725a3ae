from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.game import Player, RoundEnd, RoundResult, SeatResult
from engine.notation import parse_rack
from engine.ruleset import SABRA, MatchEnd, Ruleset, ScoreBlockedPoints, ScoreBlockedWinner
from engine.scoring import Standing, game_winners, is_last_round, rack_value, score_round
from engine.tiles import JOKER, NATURALS

FEWEST = replace(SABRA, score_blocked_winner=ScoreBlockedWinner.FEWEST_TILES)
NORMAL = replace(SABRA, score_blocked_points=ScoreBlockedPoints.NORMAL)
FEWEST_NORMAL = replace(FEWEST, score_blocked_points=ScoreBlockedPoints.NORMAL)


def standings(racks: str) -> tuple[Standing, ...]:
    """Racks of seats 1, 2 and so on, divided by `;`; a resigned player's is marked by `x`."""
    texts = [text.strip() for text in racks.split(";")]
    return tuple(
        Standing(seat, parse_rack(f"{{{text.removeprefix('x')}}}"), resigned=text.startswith("x"))
        for seat, text in enumerate(texts, 1)
    )


@pytest.mark.parametrize(
    ("tiles", "joker_penalty", "value"),
    [("", 30, 0), ("R1 B13 K7", 30, 21), ("J", 30, 30), ("J J R1", 25, 51), ("J R13", 0, 13), ("R5 R5", 100, 10)],
)
def test_a_rack_costs_its_numbers_and_the_penalty_of_its_jokers(tiles: str, joker_penalty: int, value: int) -> None:
    assert rack_value(parse_rack(f"{{{tiles}}}"), replace(SABRA, score_joker_penalty=joker_penalty)) == value


ROUNDS = [
    # racks by seat, how the round ended, winners, points
    ("; R5 B7 ; J K2", RoundEnd.WENT_OUT, SABRA, [1], [44, -12, -32]),
    ("R5 B7 ; ", RoundEnd.WENT_OUT, SABRA, [2], [-12, 12]),
    ("; x R5 ; K2 ; O9", RoundEnd.WENT_OUT, SABRA, [1], [16, -5, -2, -9]),
    ("R5 ; x J ", RoundEnd.RESIGNED, SABRA, [1], [30, -30]),
    ("x R5 ; x K9 ; R1 R2 R3 J", RoundEnd.RESIGNED, SABRA, [3], [-5, -9, 14]),
    # Blocked: the difference to the winner
    ("R5 ; B7 ; K9", RoundEnd.BLOCKED, SABRA, [1], [6, -2, -4]),
    ("R1 R2 ; B4 ; K9", RoundEnd.BLOCKED, SABRA, [1], [7, -1, -6]),
    ("R1 R2 ; B4 ; K9", RoundEnd.BLOCKED, FEWEST, [2], [0, 5, -5]),
    ("R1 R2 ; B4 ; K9", RoundEnd.BLOCKED, NORMAL, [1], [13, -4, -9]),
    ("R1 R2 ; B4 ; K9", RoundEnd.BLOCKED, FEWEST_NORMAL, [2], [-3, 12, -9]),
    # Ties: the other metric, then a shared win whose remainder goes to the earliest
    ("R1 R3 ; B4 ; K9", RoundEnd.BLOCKED, SABRA, [2], [0, 5, -5]),
    ("R1 R5 ; B4 B1 ; K7 K2 O1", RoundEnd.BLOCKED, FEWEST, [2], [-1, 6, -5]),
    ("R4 ; B4 ; K9", RoundEnd.BLOCKED, SABRA, [1, 2], [3, 2, -5]),
    ("K9 ; R4 ; B4 ; O4", RoundEnd.BLOCKED, SABRA, [2, 3, 4], [-5, 2, 2, 1]),
    ("R4 ; B4 ; K9", RoundEnd.BLOCKED, FEWEST_NORMAL, [1, 2], [5, 4, -9]),
    ("R4 ; B4", RoundEnd.BLOCKED, SABRA, [1, 2], [0, 0]),
    # Who has resigned cannot win, and pays no less than nothing
    ("x R1 ; B4 ; K9", RoundEnd.BLOCKED, SABRA, [2], [0, 5, -5]),
    ("x R1 ; B4 ; K9", RoundEnd.BLOCKED, NORMAL, [2], [-1, 10, -9]),
]


@pytest.mark.parametrize(("racks", "end", "ruleset", "winners", "points"), ROUNDS)
def test_a_round_is_scored(racks: str, end: RoundEnd, ruleset: Ruleset, winners: list[int], points: list[int]) -> None:
    held = standings(racks)
    seats = tuple(
        SeatResult(standing.seat, rack_value(standing.tiles, ruleset), len(standing.tiles), won)
        for standing, won in zip(held, points, strict=True)
    )
    assert score_round(3, end, held, ruleset) == RoundResult(3, end, tuple(winners), seats)


def test_the_earliest_of_a_shared_win_is_the_first_in_turn_order() -> None:
    first, second, third = standings("R4 ; B4 ; K9")
    result = score_round(1, RoundEnd.BLOCKED, (second, third, first), SABRA)
    assert result.winners == (2, 1)
    assert {seat.seat: seat.points for seat in result.seats} == {1: 2, 2: 3, 3: -5}


RACKS = st.lists(st.sampled_from((*NATURALS, JOKER)), min_size=1, max_size=20).map(lambda tiles: tuple(sorted(tiles)))
RULESETS = st.builds(
    lambda winner, points, penalty: replace(
        SABRA, score_blocked_winner=winner, score_blocked_points=points, score_joker_penalty=penalty
    ),
    st.sampled_from(ScoreBlockedWinner),
    st.sampled_from((ScoreBlockedPoints.DIFFERENCE, ScoreBlockedPoints.NORMAL)),
    st.integers(0, 100),
)


@given(st.lists(RACKS, min_size=2, max_size=4), RULESETS, st.booleans())
def test_points_are_moved_never_made(racks: list[tuple[int, ...]], ruleset: Ruleset, blocked: bool) -> None:
    tiles = racks if blocked else [(), *racks[1:]]
    held = tuple(Standing(seat, rack) for seat, rack in enumerate(tiles, 1))  # type: ignore[arg-type] # drawn as tiles
    result = score_round(1, RoundEnd.BLOCKED if blocked else RoundEnd.WENT_OUT, held, ruleset)
    assert sum(seat.points for seat in result.seats) == 0
    won = [seat.points for seat in result.seats if seat.seat in result.winners]
    assert min(won) >= 0
    assert max(won) - min(won) <= 1
    assert all(seat.points <= 0 for seat in result.seats if seat.seat not in result.winners)


def players(*totals: int) -> tuple[Player, ...]:
    return tuple(Player(seat, f"p{seat}", total) for seat, total in enumerate(totals, 1))


@pytest.mark.parametrize(
    ("end", "rounds", "totals", "last"),
    [
        (MatchEnd.SINGLE_ROUND, 1, (5, -5), True),
        (MatchEnd.FIXED_ROUNDS, 2, (500, -500), False),
        (MatchEnd.FIXED_ROUNDS, 3, (5, -5), True),
        (MatchEnd.TARGET_SCORE, 9, (99, -99), False),
        (MatchEnd.TARGET_SCORE, 1, (-100, 100), True),
        (MatchEnd.ROUNDS_PER_PLAYER, 2, (5, -5, 0), False),
        (MatchEnd.ROUNDS_PER_PLAYER, 3, (5, -5, 0), True),
    ],
)
def test_when_a_game_ends(end: MatchEnd, rounds: int, totals: tuple[int, ...], last: bool) -> None:
    ruleset = replace(SABRA, match_end=end, match_rounds=3, match_target_score=100)
    assert is_last_round(rounds, players(*totals), ruleset) == last


def test_the_highest_total_of_those_who_stayed_wins() -> None:
    assert game_winners(players(10, -30, 20)) == (3,)
    assert game_winners(players(-10, 5, 5)) == (2, 3)
    first, second, third = players(90, 10, 5)
    assert game_winners((replace(first, resigned=True), second, third)) == (2,)
