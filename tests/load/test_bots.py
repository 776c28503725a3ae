"""Tests for the comparison of bots: its rounds are the same each time, and its table says what they show."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from engine.discard.bots import SKILLS as DISCARD_SKILLS
from engine.discard.ruleset import ScoreSystem
from engine.melding import skills as melding_skills
from engine.seats import BotLevel
from load import bots
from load.bots import Pairing
from tools.servers import ROOT

WEAK, STRONG = BotLevel.BEGINNER, BotLevel.EXPERT


def test_a_round_is_repeatable_and_has_one_result() -> None:
    first, again = (bots.play(("AMERICAN", WEAK, STRONG, 3)) for _ in range(2))
    assert (first.won, first.lost, first.blocked) == (again.won, again.lost, again.blocked)
    assert (first.rounds, first.won + first.lost) == (1, 1)


def test_a_round_that_no_player_finishes_goes_to_the_better_points() -> None:
    pairing = bots.play(("OKEY_101_PARTNERS", WEAK, STRONG, 3))
    assert (pairing.blocked, pairing.won + pairing.lost) == (1, 1)


def test_the_better_level_wins_more() -> None:
    wins = [bots.play(("AMERICAN", WEAK, STRONG, number)).won for number in range(12)]
    assert sum(wins) > 6


def test_the_interval_of_a_share_contains_it() -> None:
    pairing = Pairing("EASY", "MEDIUM", won=67, lost=33, rounds=100)
    low, high = pairing.interval
    assert (round(low, 3), round(high, 3)) == (0.573, 0.754)
    assert pairing.text == "67% (57% to 75%)"
    assert Pairing("EASY", "MEDIUM", won=95, lost=5, rounds=100).text == "**95% (89% to 98%)**"


def test_the_page_has_a_row_for_each_preset_that_was_played(tmp_path: Path) -> None:
    pairings = [Pairing("EASY", "MEDIUM", 60, 30, 6, 96, 9.6, 0.25)]
    bots.keep("OKEY", pairings, tmp_path)
    assert json.loads((tmp_path / "OKEY.json").read_text())["pairings"] == [asdict(pairings[0])]
    rows = [line for line in bots.page_text(tmp_path).splitlines() if line.startswith("| OKEY")]
    assert rows == ["| OKEY | 96 | 67% (56% to 76%) | **6%**, 6% | 250 ms | 0.10 |"]


def test_the_page_states_the_rates_of_each_level() -> None:
    page = (ROOT / "docs" / "bots.md").read_text()
    melding = (melding_skills.SABRA, melding_skills.NO_FORESIGHT, melding_skills.MUST_PLAY)
    systems = (ScoreSystem.OKEY, ScoreSystem.OKEY_101, ScoreSystem.AMERICAN)
    for level in (BotLevel.BEGINNER, BotLevel.EASY, BotLevel.MEDIUM, BotLevel.HARD, BotLevel.EXPERT):
        pairs = [f"{row[level].rack}, {row[level].table}" if level in row else "all" for row in melding]
        rates = [str(DISCARD_SKILLS[system][level].rack) for system in systems]
        assert f"| {' | '.join((level.name, *pairs, *rates))} |" in page
    assert DISCARD_SKILLS[ScoreSystem.INTERNATIONAL] == DISCARD_SKILLS[ScoreSystem.OKEY]


def test_a_preset_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bots.main(["CHESS"])
    assert "no presets: CHESS" in capsys.readouterr().err


def test_a_run_of_one_level_plays_one_pairing(capsys: pytest.CaptureFixture[str]) -> None:
    assert bots.main(["AMERICAN", "--rounds", "2", "--level", "EASY", "--processes", "1"]) == 0
    assert capsys.readouterr().out.count("%)") == 1


def test_a_quick_run_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert bots.main(["AMERICAN", "--quick", "--processes", "1"]) == 0
    assert "AMERICAN | 4 | " in capsys.readouterr().out
