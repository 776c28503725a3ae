from dataclasses import replace
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.game import RoundEnd, RoundResult, SeatResult
from engine.melding.ruleset import (
    SABRA,
    Contract,
    MatchEnd,
    MatchWinner,
    Ruleset,
    ScoreBlockedPoints,
    ScoreBlockedTie,
    ScoreBlockedWinner,
    ScoreNeverMelded,
    ScoreTileValues,
    ScoreWinner,
    Teams,
    problems,
)
from engine.melding.scoring import Standing, game_winners, is_last_round, rack_value, score_round
from engine.notation import parse_rack
from engine.seats import Player
from engine.tiles import JOKER, NATURALS, Tile

FEWEST = replace(SABRA, score_blocked_winner=ScoreBlockedWinner.FEWEST_TILES)
NORMAL = replace(SABRA, score_blocked_points=ScoreBlockedPoints.NORMAL)
FEWEST_NORMAL = replace(FEWEST, score_blocked_points=ScoreBlockedPoints.NORMAL)


def standings(racks: str) -> tuple[Standing, ...]:
    """Parses the racks of seats 1, 2 and so on, separated by `;`.

    Marks: `x` resigned, `-` never melded, `!` declined the initial meld.
    """
    return tuple(standing(seat, text.strip()) for seat, text in enumerate(racks.split(";"), 1))


def standing(seat: int, text: str) -> Standing:
    marks = text[: len(text) - len(text.lstrip("x-!"))]
    tiles = parse_rack(f"{{{text[len(marks) :].strip()}}}")
    return Standing(seat, tiles, "x" in marks, not {"-", "!"} & set(marks), "!" in marks)


@pytest.mark.parametrize(
    ("tiles", "joker_penalty", "value"),
    [("", 30, 0), ("R1 B13 K7", 30, 21), ("J", 30, 30), ("J J R1", 25, 51), ("J R13", 0, 13), ("R5 R5", 100, 10)],
)
def test_a_rack_costs_its_numbers_and_the_penalty_of_its_jokers(tiles: str, joker_penalty: int, value: int) -> None:
    assert rack_value(parse_rack(f"{{{tiles}}}"), replace(SABRA, score_joker_penalty=joker_penalty)) == value


ROUNDS = [
    # racks by seat, end of the round, winners, points
    ("; R5 B7 ; J K2", RoundEnd.WENT_OUT, SABRA, [1], [44, -12, -32]),
    ("R5 B7 ; ", RoundEnd.WENT_OUT, SABRA, [2], [-12, 12]),
    ("; x R5 ; K2 ; O9", RoundEnd.WENT_OUT, SABRA, [1], [16, -5, -2, -9]),
    ("R5 ; x J ", RoundEnd.RESIGNED, SABRA, [1], [30, -30]),
    ("x R5 ; x K9 ; R1 R2 R3 J", RoundEnd.RESIGNED, SABRA, [3], [-5, -9, 14]),
    # Blocked: the difference from the winner
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
    # A resigned player cannot win, and pays at least nothing
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


WENT_OUT, BLOCKED, RESIGNED = RoundEnd.WENT_OUT, RoundEnd.BLOCKED, RoundEnd.RESIGNED
MELDED_LESS = "; R5 ; - R9 R1 ; - J"
"""Seat 2 has melded, seats 3 and 4 have not. Rack values: 0, 5, 10, 30."""
BLOCKED_LESS = "R2 ; R5 ; - R9 R1 ; - J"
"""The same in a blocked round. Rack values: 2, 5, 10, 30."""

OPTIONS = [
    (option, racks, end, winners, points)
    for option, cases in {
        ScoreBlockedWinner.LOWEST_VALUE: [("R9 ; R1 R2 ; K9 K1", BLOCKED, [2], [-6, 13, -7])],
        ScoreBlockedWinner.FEWEST_TILES: [("R9 ; R1 R2 ; K9 K1", BLOCKED, [1], [1, 0, -1])],
        ScoreBlockedPoints.DIFFERENCE: [
            ("; R5 ; K9", WENT_OUT, [1], [14, -5, -9]),
            ("R2 ; R5 ; K9", BLOCKED, [1], [10, -3, -7]),
        ],
        ScoreBlockedPoints.NORMAL: [("R2 ; R5 ; K9", BLOCKED, [1], [14, -5, -9])],
        ScoreBlockedPoints.OWN_PLUS_DIFFERENCE: [
            ("; R5 ; K9", WENT_OUT, [1], [14, -5, -9]),
            ("R2 ; R5 ; K9", BLOCKED, [1], [10, -5, -9]),
            ("x R1 ; R2 ; K9", BLOCKED, [2], [-1, 7, -9]),
            ("R2 ; B2 ; K9", BLOCKED, [1, 2], [4, 3, -9]),
        ],
        ScoreBlockedTie.OTHER_METRIC_THEN_SHARE: [
            ("R1 R3 ; B4 ; K9", BLOCKED, [2], [0, 5, -5]),
            ("R4 ; B4 ; K9", BLOCKED, [1, 2], [3, 2, -5]),
        ],
        ScoreBlockedTie.SHARE: [
            ("R1 R3 ; B4 ; K9", BLOCKED, [1, 2], [3, 2, -5]),
            ("R4 ; B4 ; K9", BLOCKED, [1, 2], [3, 2, -5]),
            ("; R5 ; R9", WENT_OUT, [1], [14, -5, -9]),
        ],
        ScoreBlockedTie.TURN_ORDER: [
            ("R1 R3 ; B4 ; K9", BLOCKED, [1], [5, 0, -5]),
            ("x R1 R3 ; B4 ; K1 K3 ; K9", BLOCKED, [2], [0, 5, 0, -5]),
        ],
        ScoreWinner.SUM_OF_LOSERS: [("; R5 ; K9", WENT_OUT, [1], [14, -5, -9])],
        ScoreWinner.SUM_OF_LOSERS_LOSERS_ZERO: [
            ("; R5 ; K9", WENT_OUT, [1], [14, 0, 0]),
            ("R4 ; B4 ; K9", BLOCKED, [1, 2], [3, 2, 0]),
        ],
        ScoreWinner.ONE_WIN: [
            ("; R5 ; K9", WENT_OUT, [1], [1, 0, 0]),
            ("R4 ; B4 ; K9", BLOCKED, [1, 2], [1, 1, 0]),
            ("x R5 ; R9", RESIGNED, [2], [0, 1]),
        ],
        ScoreNeverMelded.OFF: [
            (MELDED_LESS, WENT_OUT, [1], [45, -5, -10, -30]),
            (BLOCKED_LESS, BLOCKED, [1], [39, -3, -8, -28]),
        ],
        # Seats 3 and 4 pay 10 and 30 to every other player; in the blocked round 8 and 28.
        ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER: [
            (MELDED_LESS, WENT_OUT, [1], [45, 35, 20, -20]),
            (BLOCKED_LESS, BLOCKED, [1], [43, 37, 20, -20]),
            ("R4 ; B4 ; K9 ; - O9", BLOCKED, [1, 2], [12, 11, 4, -9]),
            ("; - R5 ; x R7", WENT_OUT, [1], [12, -5, -2]),
        ],
        ScoreNeverMelded.FLAT_100: [
            (MELDED_LESS, WENT_OUT, [1], [205, -5, -100, -100]),
            (BLOCKED_LESS, BLOCKED, [1], [203, -3, -100, -100]),
            ("; ! R5 ; x- R7", WENT_OUT, [1], [200, -100, -100]),
        ],
        ScoreNeverMelded.FLAT_100_OR_200: [
            (MELDED_LESS, WENT_OUT, [1], [205, -5, -100, -100]),
            ("; ! R5 ; x- R7", WENT_OUT, [1], [300, -200, -100]),
        ],
        ScoreNeverMelded.DOUBLE: [
            (MELDED_LESS, WENT_OUT, [1], [85, -5, -20, -60]),
            (BLOCKED_LESS, BLOCKED, [1], [75, -3, -16, -56]),
            # The winner of a blocked round pays nothing, melded or not.
            ("- R2 ; R5", BLOCKED, [1], [3, -3]),
        ],
        ScoreTileValues.NUMBERS: [("; R1 R2 ; K10 K13", WENT_OUT, [1], [26, -3, -23])],
        ScoreTileValues.COURT_10: [("; R1 R2 ; K10 K13", WENT_OUT, [1], [23, -3, -20])],
        ScoreTileValues.COURT_10_ACE_11: [("; R1 R2 ; K10 K13", WENT_OUT, [1], [33, -13, -20])],
        ScoreTileValues.FIVE_OR_TEN: [("; R1 R2 ; K10 K13", WENT_OUT, [1], [30, -10, -20])],
        Teams.OFF: [("; R5 ; K9 ; J", WENT_OUT, [1], [44, -5, -9, -30])],
        Teams.PAIRS: [
            ("; R5 ; K9 ; J", WENT_OUT, [1, 3], [26, 0, 26, 0]),
            ("R5 ; ; J ; K9", WENT_OUT, [2, 4], [0, 26, 0, 26]),
            ("; R5 ; J ; K9", WENT_OUT, [1, 3], [0, 0, 0, 0]),
            ("; R5 ; x K9 ; x J", WENT_OUT, [1], [26, 0, 26, 0]),
            ("R2 ; R5 ; K9 ; J", BLOCKED, [1, 3], [24, 0, 24, 0]),
            ("R2 ; R5 ; K9 ; K3", BLOCKED, [1, 3], [0, 0, 0, 0]),
            ("x R1 ; x R5 ; K9 ; x J", RESIGNED, [3], [34, 0, 34, 0]),
            # Tied within a side, and across the sides
            ("R2 ; R5 ; K2 ; J", BLOCKED, [1, 3], [31, 0, 31, 0]),
            ("R2 ; K2 ; R5 ; J", BLOCKED, [1, 2, 3, 4], [25, 0, 25, 0]),
        ],
        MatchWinner.HIGHEST_TOTAL: [("; R5 ; K9", WENT_OUT, [1], [14, -5, -9])],
        MatchWinner.MOST_ROUND_WINS_THEN_TOTAL: [("; R5 ; K9", WENT_OUT, [1], [14, -5, -9])],
        MatchWinner.LOWEST_TOTAL: [
            ("; R5 ; K9", WENT_OUT, [1], [-14, 5, 9]),
            ("R2 ; R5 ; K9", BLOCKED, [1], [-10, 3, 7]),
        ],
    }.items()
    for racks, end, winners, points in cases
]
"""Option value, racks by seat, end of the round, winners, points by seat."""
FIELD_OF: dict[type[Enum], str] = {
    ScoreBlockedWinner: "score_blocked_winner",
    ScoreBlockedPoints: "score_blocked_points",
    ScoreBlockedTie: "score_blocked_tie",
    ScoreWinner: "score_winner",
    ScoreNeverMelded: "score_never_melded",
    ScoreTileValues: "score_tile_values",
    Teams: "teams",
    MatchWinner: "match_winner",
}


def points_of(result: RoundResult) -> list[int]:
    return [seat.points for seat in result.seats]


def scored(option: Enum, racks: str, end: RoundEnd) -> tuple[list[int], list[int]]:
    ruleset = replace(SABRA, **{FIELD_OF[type(option)]: option})  # type: ignore[arg-type] # a field's own enum
    result = score_round(1, end, standings(racks), ruleset)
    return list(result.winners), points_of(result)


@pytest.mark.parametrize(("option", "racks", "end", "winners", "points"), OPTIONS)
def test_each_value_of_each_option(
    option: Enum, racks: str, end: RoundEnd, winners: list[int], points: list[int]
) -> None:
    assert scored(option, racks, end) == (winners, points)


OF_GAMES = {MatchWinner.HIGHEST_TOTAL, MatchWinner.MOST_ROUND_WINS_THEN_TOTAL}
"""Options with the same scores of rounds but other winners of a game."""


@pytest.mark.parametrize("enum", FIELD_OF)
def test_each_value_has_a_case_that_each_other_value_scores_differently(enum: type[Enum]) -> None:
    for value in enum:
        cases = [(racks, end) for option, racks, end, *_ in OPTIONS if option is value]
        for other in set(enum) - {value} - (OF_GAMES if value in OF_GAMES else set()):
            assert [scored(value, *case) for case in cases] != [scored(other, *case) for case in cases], (value, other)


CREDITS = replace(SABRA, score_never_melded=ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER)
PAIRS = replace(SABRA, teams=Teams.PAIRS, players_min=4)
CONTRACT = replace(SABRA, contract=Contract.SINGLE_COLOR, contract_points=50)

COMBINATIONS = [
    # From a player who never melded, the winner under OWN_PLUS_DIFFERENCE gets the same as every other player
    (replace(CREDITS, score_blocked_points=ScoreBlockedPoints.OWN_PLUS_DIFFERENCE), [13, 5, -10], "R2 ; R5 ; - R9 R1"),
    (replace(CREDITS, score_blocked_points=ScoreBlockedPoints.NORMAL), [15, 5, -10], "R2 ; R5 ; - R9 R1"),
    (replace(CREDITS, score_winner=ScoreWinner.SUM_OF_LOSERS_LOSERS_ZERO), [13, 10, 0], "R2 ; R5 ; - R9 R1"),
    (replace(CREDITS, score_winner=ScoreWinner.ONE_WIN), [1, 0, 0], "R2 ; R5 ; - R9 R1"),
    (replace(CREDITS, match_winner=MatchWinner.LOWEST_TOTAL), [-13, -7, 10], "R2 ; R5 ; - R9 R1"),
    (
        replace(
            SABRA,
            score_never_melded=ScoreNeverMelded.DOUBLE,
            score_blocked_points=ScoreBlockedPoints.OWN_PLUS_DIFFERENCE,
        ),
        [19, -5, -20],
        "R2 ; R5 ; - R9 R1",
    ),
    # Tied by number of tiles: the lowest rack of the winners counts
    (replace(FEWEST, score_blocked_tie=ScoreBlockedTie.SHARE), [4, 3, -7], "R9 ; R2 ; K8 K1"),
    (replace(FEWEST, score_blocked_tie=ScoreBlockedTie.TURN_ORDER), [0, 0, 0], "R9 ; R2 ; K8 K1"),
    # A blocked round in pairs without the difference: the winners' racks do not count
    (replace(PAIRS, score_blocked_points=ScoreBlockedPoints.NORMAL), [26, 0, 26, 0], "R2 ; R5 ; K9 ; J"),
    (replace(PAIRS, score_blocked_points=ScoreBlockedPoints.NORMAL), [25, 0, 25, 0], "R2 ; K2 ; R5 ; J"),
    # After a resignation: seats 1 and 3 against seat 2
    (PAIRS, [12, 0, 12], "R2 ; J ; K9 K7"),
    # Points for a contract, for winners who have melded
    (CONTRACT, [60, -3, -7], "R2 ; R5 ; K9"),
    (CONTRACT, [10, -3, -7], "- R2 ; R5 ; K9"),
    (CONTRACT, [53, 52, -5], "R4 ; B4 ; K9"),
    (CONTRACT, [53, 2, -5], "R4 ; - B4 ; K9"),
    (replace(CONTRACT, score_winner=ScoreWinner.ONE_WIN), [51, 0, 0], "R2 ; R5 ; K9"),
    (replace(CONTRACT, match_winner=MatchWinner.LOWEST_TOTAL), [-60, 3, 7], "R2 ; R5 ; K9"),
    (replace(CONTRACT, teams=Teams.PAIRS, players_min=4), [74, 0, 24, 0], "R2 ; R5 ; - K9 ; J"),
    (replace(SABRA, contract_points=50), [10, -3, -7], "R2 ; R5 ; K9"),
]


@pytest.mark.parametrize(("ruleset", "points", "racks"), COMBINATIONS)
def test_options_that_meet_in_a_blocked_round(ruleset: Ruleset, points: list[int], racks: str) -> None:
    assert points_of(score_round(1, BLOCKED, standings(racks), ruleset)) == points


def test_partners_sit_opposite_in_any_turn_order() -> None:
    seated = zip(standings("; R5 ; K9 ; J"), (20, 40, 30, 50), strict=True)
    result = score_round(1, WENT_OUT, tuple(replace(held, seat=seat) for held, seat in seated), PAIRS)
    assert result.winners == (20, 40)
    assert points_of(result) == [34, 34, 0, 0]


def test_partners_stay_partners_when_a_player_has_left() -> None:
    held = standings("; R5 ; K9 ; J")
    result = score_round(2, WENT_OUT, (held[0], held[2], held[3]), PAIRS)
    assert (result.winners, points_of(result)) == ((1, 3), [21, 21, 0])


@pytest.mark.parametrize("tie", ScoreBlockedTie)
def test_of_two_partners_left_one_has_gone_out(tie: ScoreBlockedTie) -> None:
    """Tie options apply only to blocked rounds: here fewer tiles decide, then their value, then turn order."""
    ruleset = replace(PAIRS, score_blocked_tie=tie)
    for partners, points in {"K9 R1 ; K8": 32, "K9 ; K8": 33, "K8 ; K9": 33, "K9 ; K9": 33}.items():
        first, third = partners.split(" ; ")
        held = standings(f"{first} ; J ; {third} ; R12")
        able = tuple(replace(standing, resigned=standing.seat in {2, 4}) for standing in held)
        result = score_round(1, RoundEnd.RESIGNED, able, ruleset)
        assert (result.winners, points_of(result)) == ((1, 3), [points, 0, points, 0]), partners


def test_going_out_never_ties() -> None:
    ruleset = replace(SABRA, score_blocked_tie=ScoreBlockedTie.SHARE, score_joker_penalty=0)
    assert score_round(1, WENT_OUT, standings("J ; ; R5"), ruleset).winners == (2,)


@pytest.mark.parametrize("contract", [c for c in Contract if c is not Contract.OFF])
def test_every_contract_has_its_points(contract: Contract) -> None:
    ruleset = replace(SABRA, contract=contract, contract_points=7)
    assert points_of(score_round(1, WENT_OUT, standings("; R5"), ruleset)) == [12, -5]


def test_a_resigned_player_gets_no_contract_points() -> None:
    assert points_of(score_round(1, RESIGNED, standings("x R5 ; R9"), CONTRACT)) == [-5, 55]


def by_the_book(
    racks: list[tuple[Tile, ...]], blocked: bool, by_value: bool, difference: bool, penalty: int
) -> list[int]:
    """Returns points by R60 to R63: every loser pays each winner, and the remainder goes to the earliest one."""
    values = [sum(penalty if t == JOKER else (t - 1) % 13 + 1 for t in rack) for rack in racks]
    keys = [(v, len(r)) if by_value else (len(r), v) for v, r in zip(values, racks, strict=True)]
    winners = [place for place, key in enumerate(keys) if key == min(keys)] if blocked else [racks.index(())]
    points = [0] * len(racks)
    for place, value in enumerate(values):
        if place not in winners:
            paid = max(value - values[winners[0]], 0) if blocked and difference else value
            points[place] -= paid
            points[winners[0]] += paid
    pot = points[winners[0]]
    points[winners[0]] = 0
    for coin in range(pot):
        points[winners[coin % len(winners)]] += 1
    return points


RACKS = st.lists(st.sampled_from((*NATURALS, JOKER)), min_size=1, max_size=12).map(lambda tiles: tuple(sorted(tiles)))
SMALL_RACKS = st.lists(st.sampled_from((*NATURALS[:4], JOKER)), min_size=1, max_size=3).map(tuple)
RACK_LISTS = st.lists(RACKS, min_size=2, max_size=4) | st.lists(SMALL_RACKS, min_size=2, max_size=4)


@pytest.mark.unmeasured
@given(RACK_LISTS, st.booleans(), st.booleans(), st.booleans(), st.integers(0, 100))
def test_the_first_options_are_scored_by_the_book(
    racks: list[tuple[Tile, ...]], blocked: bool, by_value: bool, difference: bool, penalty: int
) -> None:
    ruleset = replace(
        SABRA,
        score_blocked_winner=ScoreBlockedWinner.LOWEST_VALUE if by_value else ScoreBlockedWinner.FEWEST_TILES,
        score_blocked_points=ScoreBlockedPoints.DIFFERENCE if difference else ScoreBlockedPoints.NORMAL,
        score_joker_penalty=penalty,
    )
    held = racks if blocked else [*racks[:1], (), *racks[2:]]
    result = score_round(1, BLOCKED if blocked else WENT_OUT, in_seats(held), ruleset)
    assert points_of(result) == by_the_book(held, blocked, by_value, difference, penalty)


def in_seats(racks: list[tuple[Tile, ...]]) -> tuple[Standing, ...]:
    return tuple(Standing(seat, rack) for seat, rack in enumerate(racks, 1))


RULESETS = st.builds(
    Ruleset,
    score_blocked_winner=st.sampled_from(ScoreBlockedWinner),
    score_blocked_points=st.sampled_from(ScoreBlockedPoints),
    score_blocked_tie=st.sampled_from(ScoreBlockedTie),
    score_winner=st.sampled_from(ScoreWinner),
    score_never_melded=st.sampled_from(ScoreNeverMelded),
    score_joker_penalty=st.integers(0, 100),
)
ENDED = st.builds(
    lambda held, blocked: (held if blocked else (replace(held[0], tiles=()), *held[1:]), blocked),
    st.lists(
        st.builds(Standing, st.just(0), RACKS | SMALL_RACKS, has_melded=st.booleans(), declined=st.booleans()),
        min_size=2,
        max_size=6,
    ).map(lambda held: tuple(replace(standing, seat=seat) for seat, standing in enumerate(held, 1))),
    st.booleans(),
)
"""The players in seats 1, 2 and so on, and whether the round was blocked."""


def is_zero_sum(ruleset: Ruleset, blocked: bool) -> bool:
    """Returns whether points sum to zero under a ruleset."""
    return (
        ruleset.score_winner is ScoreWinner.SUM_OF_LOSERS
        and ruleset.score_never_melded is not ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER
        and not (blocked and ruleset.score_blocked_points is ScoreBlockedPoints.OWN_PLUS_DIFFERENCE)
    )


@pytest.mark.unmeasured
@given(ENDED, RULESETS)
def test_points_are_moved_and_made_only_where_the_rules_say_so(
    ended: tuple[tuple[Standing, ...], bool], ruleset: Ruleset
) -> None:
    held, blocked = ended
    result = score_round(1, BLOCKED if blocked else WENT_OUT, held, ruleset)
    won = {seat.seat: seat.points for seat in result.seats}
    assert set(result.winners) <= set(won)
    assert min(won[seat] for seat in result.winners) >= 0
    assert max(won[seat] for seat in result.winners) - min(won[seat] for seat in result.winners) <= 1
    if is_zero_sum(ruleset, blocked):
        assert sum(won.values()) == 0
    if ruleset.score_never_melded is not ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER:
        assert all(points <= 0 for seat, points in won.items() if seat not in result.winners)


@pytest.mark.unmeasured
@given(ENDED, RULESETS)
def test_penalty_points_are_points_with_the_sign_turned_round(
    ended: tuple[tuple[Standing, ...], bool], ruleset: Ruleset
) -> None:
    held, blocked = ended
    end = BLOCKED if blocked else WENT_OUT
    penalties = score_round(1, end, held, replace(ruleset, match_winner=MatchWinner.LOWEST_TOTAL))
    assert points_of(penalties) == [-points for points in points_of(score_round(1, end, held, ruleset))]


@pytest.mark.unmeasured
@given(ENDED, RULESETS, st.permutations(range(1, 7)))
def test_points_do_not_depend_on_the_seats_numbers(
    ended: tuple[tuple[Standing, ...], bool], ruleset: Ruleset, names: list[int]
) -> None:
    held, blocked = ended
    end = BLOCKED if blocked else WENT_OUT
    renamed = tuple(replace(standing, seat=names[standing.seat - 1]) for standing in held)
    result, other = score_round(1, end, held, ruleset), score_round(1, end, renamed, ruleset)
    assert points_of(other) == points_of(result)
    assert other.winners == tuple(names[seat - 1] for seat in result.winners)


@given(st.lists(RACKS | SMALL_RACKS, min_size=4, max_size=4), st.sampled_from(ScoreBlockedPoints), st.integers(1, 3))
def test_partners_win_the_same(racks: list[tuple[Tile, ...]], points: ScoreBlockedPoints, turns: int) -> None:
    ruleset = replace(PAIRS, score_blocked_points=points)
    held = in_seats(racks)
    result = score_round(1, BLOCKED, held, ruleset)
    first, second, third, fourth = points_of(result)
    assert first == third >= 0
    assert second == fourth >= 0
    assert 0 in {first, second}
    assert set(result.winners) in [{1, 3}, {2, 4}, {1, 2, 3, 4}]
    turned = score_round(1, BLOCKED, held[turns:] + held[:turns], ruleset)
    assert {seat.seat: seat.points for seat in turned.seats} == {seat.seat: seat.points for seat in result.seats}


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
@pytest.mark.parametrize("winner", MatchWinner)
def test_when_a_game_ends(end: MatchEnd, rounds: int, totals: tuple[int, ...], last: bool, winner: MatchWinner) -> None:
    ruleset = replace(SABRA, match_end=end, match_rounds=3, match_target_score=100, match_winner=winner)
    assert is_last_round(rounds, players(*totals), ruleset) == last


def won_by(*winners: int) -> RoundResult:
    return RoundResult(1, WENT_OUT, winners, ())


@pytest.mark.parametrize(
    ("winner", "totals", "rounds", "winners"),
    [
        (MatchWinner.HIGHEST_TOTAL, (10, -30, 20), (), (3,)),
        (MatchWinner.HIGHEST_TOTAL, (-10, 5, 5), (), (2, 3)),
        (MatchWinner.HIGHEST_TOTAL, (10, -30, 20), (won_by(1), won_by(1)), (3,)),
        (MatchWinner.MOST_ROUND_WINS_THEN_TOTAL, (10, -30, 20), (won_by(1), won_by(3), won_by(1)), (1,)),
        (MatchWinner.MOST_ROUND_WINS_THEN_TOTAL, (10, -30, 20), (won_by(1), won_by(2), won_by(3)), (3,)),
        (MatchWinner.MOST_ROUND_WINS_THEN_TOTAL, (10, 10, 20), (won_by(1), won_by(2, 1), won_by(2)), (1, 2)),
        (MatchWinner.LOWEST_TOTAL, (10, -30, 20), (won_by(1), won_by(3)), (2,)),
        (MatchWinner.LOWEST_TOTAL, (10, 5, 5), (), (2, 3)),
    ],
)
def test_the_winner_of_a_game(
    winner: MatchWinner, totals: tuple[int, ...], rounds: tuple[RoundResult, ...], winners: tuple[int, ...]
) -> None:
    assert game_winners(players(*totals), rounds, replace(SABRA, match_winner=winner)) == winners


@pytest.mark.parametrize("winner", MatchWinner)
def test_a_resigned_player_does_not_win(winner: MatchWinner) -> None:
    first, second, third = players(90, 10, 5) if winner is not MatchWinner.LOWEST_TOTAL else players(5, 10, 90)
    ruleset = replace(SABRA, match_winner=winner)
    assert game_winners((replace(first, resigned=True), second, third), (won_by(1),), ruleset) == (2,)


def test_partners_win_a_game_together() -> None:
    assert game_winners(players(9, 5, 9, 5), (), PAIRS) == (1, 3)
    assert game_winners(players(9, 5, 2, 8), (), PAIRS) == (1, 3)
    first, *others = players(2, 5, 9, 8)
    assert game_winners((replace(first, resigned=True), *others), (), PAIRS) == (3,)
    assert game_winners(players(9, 9, 9, 9), (), PAIRS) == (1, 2, 3, 4)


def test_the_rulesets_of_the_tables_are_meant() -> None:
    meant = [ruleset for ruleset, *_ in COMBINATIONS[:-1]]
    assert [problem for ruleset in meant for problem in problems(ruleset)] == []
