"""Tests for the comparison of bots: its rounds are the same each time, and its table says what they show."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.discard.bots import SKILLS as DISCARD_SKILLS
from engine.discard.ruleset import ScoreSystem
from engine.melding import skills as melding_skills
from engine.seats import BotLevel
from load import bots
from load.bots import Pairing, Results
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


FACTS = {"date": "2026-11-29", "revision": "1a2b3c4d", "machine": "AMD EPYC"}
ROUNDS = Pairing("EASY", "MEDIUM", 60, 30, 6, 96, 9.6, 0.25)


def test_the_page_has_a_row_for_each_preset_that_was_played(tmp_path: Path) -> None:
    bots.keep("OKEY", Results([FACTS], [ROUNDS]), tmp_path)
    rows = [line for line in bots.page_text(tmp_path).splitlines() if line.startswith("| OKEY")]
    assert rows == ["| OKEY | 96 | 67% (56% to 76%) | **6%**, 6% | 250 ms | 0.10 |"]


class Jobs(list[bots.Job]):
    """The rounds of a run. None is played; the better level wins them all."""

    def play(self, jobs: Sequence[bots.Job], _processes: int) -> list[Pairing]:
        self += jobs
        return [Pairing(worse.name, better.name, won=1, rounds=1) for _, worse, better, _ in jobs]


def test_a_run_that_adds_plays_the_rounds_after_those_of_earlier_runs(tmp_path: Path) -> None:
    jobs, pages = Jobs(), list[str]()
    for arguments, rounds in ((["--rounds", "2"], 2), (["--rounds", "3", "--add"], 5)):
        assert bots.main(["OKEY", *arguments], play_all=jobs.play, results=tmp_path, write_page=pages.append) == 0
        assert f"| OKEY | {rounds} | 100%" in pages[-1]
    assert Counter(jobs) == Counter(("OKEY", *pair, number) for pair in bots.NEIGHBORS for number in range(5))


def test_the_page_names_the_revisions_of_all_runs(tmp_path: Path) -> None:
    runs = Results([FACTS, {**FACTS, "revision": "2b3c"}], [ROUNDS])
    bots.keep("OKEY", runs, tmp_path)
    assert bots.page_text(tmp_path).startswith("2026-11-29, revision 1a2b3c4d, 2b3c, AMD EPYC.")


def test_rounds_of_other_rates_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results([FACTS], [ROUNDS])
    for preset in ("OKEY", "SABRA"):
        bots.keep(preset, results, tmp_path)
        assert bots.kept(preset, tmp_path) == results
    monkeypatch.setitem(DISCARD_SKILLS, ScoreSystem.OKEY, DISCARD_SKILLS[ScoreSystem.AMERICAN])
    assert bots.kept("OKEY", tmp_path) == bots.NOTHING
    assert "| OKEY |" not in bots.page_text(tmp_path)
    assert "| SABRA | 96 |" in bots.page_text(tmp_path)


@pytest.mark.parametrize("other", [["--quick"], ["--level", "EASY"]])
def test_rounds_that_are_not_kept_are_not_added(other: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bots.main(["OKEY", "--add", *other])
    assert "--add has no effect" in capsys.readouterr().err


def test_the_page_states_the_rates_of_each_level() -> None:
    page = (ROOT / "docs" / "bots.md").read_text()
    melding = (melding_skills.SABRA, melding_skills.NO_FORESIGHT)
    systems = (ScoreSystem.OKEY, ScoreSystem.OKEY_101, ScoreSystem.AMERICAN)
    for level in (BotLevel.BEGINNER, BotLevel.EASY, BotLevel.MEDIUM, BotLevel.HARD, BotLevel.EXPERT):
        pairs = [f"{row[level].rack}, {row[level].table}" if level in row else "all" for row in melding]
        best = str(melding_skills.MUST_PLAY[level].best)
        rates = [str(DISCARD_SKILLS[system][level].rack) for system in systems]
        assert f"| {' | '.join((level.name, *pairs, best, *rates))} |" in page
    assert DISCARD_SKILLS[ScoreSystem.INTERNATIONAL] == DISCARD_SKILLS[ScoreSystem.OKEY]


def test_a_preset_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bots.main(["CHESS"])
    assert "no presets: CHESS" in capsys.readouterr().err


def test_a_run_of_one_level_plays_one_pairing() -> None:
    jobs = Jobs()
    assert bots.main(["AMERICAN", "--rounds", "2", "--level", "EASY"], play_all=jobs.play) == 0
    assert jobs == [("AMERICAN", WEAK, BotLevel.EASY, number) for number in range(2)]


def test_a_quick_run_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = Jobs()
    assert bots.main(["AMERICAN", "--quick"], play_all=jobs.play) == 0
    assert "AMERICAN | 4 | " in capsys.readouterr().out
    assert len(jobs) == 4 * len(bots.NEIGHBORS)
