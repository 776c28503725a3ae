"""The turns of load tests have the engine's verdicts, and can be reproduced."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from engine.melding.analysis import Situation
from engine.melding.melds import Meld, read_meld
from engine.melding.rules import judge
from engine.melding.solver import best_turn
from load.corpus.positions import rules
from load.corpus.turns import LEGAL, MISTAKES, RecordedTurn, read

ROOT = Path(__file__).parents[2]

NAMES = {
    "foreign tile": "TILE_NOT_IN_RACK",
    "table tile taken": "TABLE_TILE_MISSING",
    "tile left out": "RUN_GAP",
    "meld cut": "MELD_TOO_SHORT",
    "too few points": "INITIAL_MELD_BELOW_THRESHOLD",
    "table changed too early": "INITIAL_MELD_TABLE_MODIFIED",
    "nothing played": "NO_RACK_TILE_PLAYED",
}
"""The expected reasons of each mistake; those of a misplaced tile vary."""


@pytest.mark.slow
def test_the_command_writes_the_same_turns_again(tmp_path: Path) -> None:
    written = []
    for number in ("1", "2"):
        file = tmp_path / f"{number}.jsonl"
        command = [sys.executable, "-m", "load.corpus.turns", "--size", "40", "--to", str(file)]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": number}, check=True)
        written.append(file.read_text())
    assert written[0] == written[1]
    assert len(written[0].splitlines()) == 40


def test_the_recorded_verdicts_are_those_of_the_engine() -> None:
    for turn in read():
        play = turn.play
        assert turn.reasons == tuple(violation.reason.name for violation in judge(play).violations), turn
        assert [not reasons for reasons in turn.meld_reasons] == [
            isinstance(read_meld(meld, play.ruleset), Meld) for meld in play.table_after
        ]
        assert (turn.sort == LEGAL) == (not turn.reasons)
        assert turn.sort not in NAMES or NAMES[turn.sort] in turn.reasons


def test_where_a_turn_is_legal_one_can_be_played_and_where_none_can_the_solver_finds_none() -> None:
    turns = read()
    assert all(turn.can_play for turn in turns if turn.sort == LEGAL)
    without = [turn for turn in turns if not turn.can_play]
    assert without
    assert not any(best_turn(_situation(turn)).turn for turn in without)


def test_there_is_some_of_everything() -> None:
    turns = read()
    made = Counter(turn.sort for turn in turns)
    assert set(made) == {LEGAL, *MISTAKES}
    assert 0.5 < made[LEGAL] / len(turns) < 0.7
    assert min(made.values()) >= 10
    assert {turn.game_jokers for turn in turns} == {0, 2, 4}
    assert {turn.has_melded for turn in turns} == {False, True}
    sizes = [turn.play.tiles_before.total() for turn in turns]
    assert min(sizes) == 0
    assert max(sizes) > 60


def _situation(turn: RecordedTurn) -> Situation:
    play = turn.play
    return Situation(play.table_before, play.rack, play.has_melded, rules(turn.game_jokers))
