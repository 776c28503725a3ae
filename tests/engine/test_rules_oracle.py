"""Compares analysis in random games with an integer program: who may draw, who declined, when a round ends."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from engine.events import RoundEnded, TurnStarted
from engine.game import Game, RoundEnd
from engine.melding.analysis import Situation
from engine.melding.events import TileDrawn, TurnPassed
from engine.melding.game import rules_of
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    PoolEmptyPass,
    PoolEmptyStuckTest,
    Ruleset,
    RunWrap,
    ScoreNeverMelded,
    ScoreWinner,
    Teams,
    TurnVoluntaryDraw,
    problems,
    with_options,
)
from engine.melding.solver import EXACT
from engine.melding.table import melds_of
from oracles.integer_program import IntegerProgram, random_rules
from support import random_play
from support.positions import is_a
from support.random_play import Change, players_of, random_changes

pytestmark = [pytest.mark.unmeasured, pytest.mark.slow]

PROVABLE = {"run_wrap": RunWrap.OFF}
"""Rules under which the rules' budget answers every question of a game."""
MUST_PLAY = {
    "turn_voluntary_draw": TurnVoluntaryDraw.ONLY_IF_NO_PLAY,
    "pool_empty_pass": PoolEmptyPass.ONLY_IF_NO_PLAY,
    "pool_empty_stuck_test": PoolEmptyStuckTest.EXACT,
}
MAY_DECLINE = {
    "score_never_melded": ScoreNeverMelded.FLAT_100_OR_200,
    "pool_empty_stuck_test": PoolEmptyStuckTest.EXACT,
    "teams": Teams.OFF,
    "score_winner": ScoreWinner.SUM_OF_LOSERS,
    "initial_meld_threshold": 70,
}


def rules_with(seed: int, options: dict[str, object]) -> Ruleset:
    """Returns rules that the program supports, with large racks, so that the pool is soon empty."""
    rng = random.Random(seed)
    while True:
        ruleset = with_options(random_rules(rng), {**PROVABLE, **options, "deal_hand_size": rng.choice((18, 20, 21))})
        if not problems(ruleset):
            return ruleset


class Oracle:
    """An analysis by the integer program that counts its questions."""

    def __init__(self) -> None:
        self.program = IntegerProgram()
        self.met: Counter[tuple[str, bool]] = Counter()

    def can_play(self, game: Game, round_: Round, seat: int) -> bool:
        """Returns whether a player has a legal play."""
        rack = round_.rack(seat)
        situation = Situation(melds_of(round_.table), rack.tiles, rack.has_melded, rules_of(game))
        return self.program.best(situation) is not None

    def check(self, before: Game, change: Change) -> None:
        """Compares one change with the answers of the program."""
        after = change.applied.game
        for event in change.applied.events:
            match event:
                case TileDrawn(seat, _, declined) | TurnPassed(seat, declined):
                    self.check_choice(before, seat, declined=declined)
                case TurnStarted() if after.round and not after.round.pool:
                    self.check_end(after, goes_on=True)
                case RoundEnded(result) if result.end is RoundEnd.BLOCKED:
                    self.check_end(after, goes_on=False)
                case _:
                    pass

    def check_choice(self, before: Game, seat: int, *, declined: bool) -> None:
        """Checks that a player who must play had no play, and that only those who declined an initial meld had one."""
        round_ = is_a(before.round, Round)
        must_play = rules_of(before).turn_voluntary_draw is TurnVoluntaryDraw.ONLY_IF_NO_PLAY
        if must_play or not round_.rack(seat).has_melded:
            could = self.can_play(before, round_, seat)
            assert could == declined, f"seat {seat} in {before}"
            assert not (could and must_play), f"seat {seat} played nothing and could in {before}"
            self.met["declined", declined] += 1

    def check_end(self, after: Game, *, goes_on: bool) -> None:
        """Checks that a round continues with an empty pool if and only if some player has a play."""
        round_ = is_a(after.round, Round)
        can = [seat for seat in after.active_seats if self.can_play(after, round_, seat)]
        assert bool(can) == goes_on, f"{can} can play in {after}"
        self.met["goes on", goes_on] += 1


@pytest.mark.parametrize(
    ("options", "seeds"),
    [
        (MUST_PLAY, range(3)),
        (MAY_DECLINE, (22, 29, 46)),
        pytest.param(MUST_PLAY, range(10), marks=pytest.mark.soak),
        pytest.param(
            MAY_DECLINE, (8, 10, 11, 19, 22, 29, 30, 38, 41, 48), marks=pytest.mark.soak
        ),  # the program is slow for others
    ],
    ids=["must play", "may decline", "must play: more", "may decline: more"],
)
def test_analysis_agrees_with_the_integer_program(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, object], seeds: Sequence[int]
) -> None:
    monkeypatch.setattr(random_play, "ANALYSIS", EXACT)
    oracle = Oracle()
    for seed in seeds:
        ruleset = rules_with(seed, options)
        before = None
        for change in random_changes(seed, players_of(ruleset, seed), ruleset):
            if before:
                oracle.check(before, change)
            before = change.applied.game
    assert bool(oracle.met["declined", True]) == bool(oracle.met["goes on", True]) == (options is MAY_DECLINE)
    assert bool(oracle.met["goes on", False]) == (options is MAY_DECLINE)
    assert oracle.met["declined", False] > 20
