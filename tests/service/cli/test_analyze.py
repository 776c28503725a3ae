"""The command `rummikub-analyze`, run here, and as a process where its output is a terminal, a pipe or closed."""

import contextlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

import service.cli.analyze
from engine.effort import Budget
from engine.melding.analysis import AnySituation, Situation
from engine.melding.ruleset import Preset
from engine.melding.solver import BestTurn, Objective, best_turn
from engine.record_text import format_record
from service.puzzles import lines_of
from support.okey_games import random_changes
from support.records import recorded

pytestmark = pytest.mark.slow

COUNT = len(lines_of(Preset.SABRA))
ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-m", "service.cli.analyze")


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    error: str


def analyze(*arguments: str) -> Ran:
    """Runs the command with its output in memory."""
    out, error = io.StringIO(), io.StringIO()
    status: str | int = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            service.cli.analyze.main(arguments)
        except SystemExit as end:
            status = end.code or 0
    if isinstance(status, str):  # the interpreter prints it
        return Ran(1, out.getvalue(), f"{error.getvalue()}{status}\n")
    return Ran(status, out.getvalue(), error.getvalue())


def on_a_terminal(*arguments: str, keys: bytes = b"", **environment: str) -> str:
    """Runs the command on a terminal, where keys are pressed at once; returns its output."""
    master, slave = pty.openpty()
    with os.fdopen(master, "rb", buffering=0) as screen:
        env = {**os.environ, "TERM": "xterm", **environment}
        command = [*COMMAND, *arguments]
        with subprocess.Popen(command, cwd=ROOT, env=env, stdin=slave, stdout=slave, close_fds=True) as process:
            os.close(slave)
            os.write(master, keys)
            shown = b""
            try:
                while part := screen.read(4096):
                    shown += part
            except OSError:
                pass  # Linux raises EIO after the other end of a terminal is closed
        assert process.returncode == 0
    return shown.decode().replace("\r\n", "\n")


def test_the_output_has_the_position_the_best_turn_its_steps_and_the_table_after_it() -> None:
    assert analyze("[R4 J R6] | [B9 K9 O9] + *{R5 O11 O12 B1}") == Ran(
        0,
        """\
Table
  1. [R4 J R6]
  2. [B9 K9 O9]
Rack: R5 B1 O11 O12

Best turn: play R5 O11 O12
Rack then: B1
No turn plays more tiles, and no equally good turn leaves more melds unchanged.

Steps
  1. Put R5 from the rack in the joker's place in meld 1: [R4 R5 R6]; the joker is free
  2. Lay O11 O12 from the rack for the new meld [O11 O12 J]: [O11 O12]
  3. Put the free joker to the new meld [O11 O12 J]

Table then
     [B9 K9 O9]
     [R4 R5 R6]
     [O11 O12 J]
""",
        "",
    )


def test_a_puzzle_can_be_chosen_by_its_number() -> None:
    ran = analyze("--puzzle", "2", "--answer")
    assert ran.status == 0
    assert re.match(rf"Puzzle 2 of {COUNT} \([a-z]+\): play (the whole rack|\d+ tiles of the rack)\n\nTable\n", ran.out)
    assert "Rack then: " in ran.out
    assert json.loads(analyze("--puzzle", "2", "--json").out)["puzzle"] == 2
    refused = analyze("--puzzle", str(COUNT + 1))
    assert refused.status == 2
    assert f"is not the number of a puzzle: expected 1 to {COUNT}" in refused.error


def test_the_answer_of_a_puzzle_is_shown_on_demand_only() -> None:
    def never(*_: object) -> BestTurn:
        raise AssertionError("nobody has asked")

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        service.cli.analyze.main(["--puzzle", "2"], never)
    assert out.getvalue().endswith("\n--answer shows how.\n")
    assert "Rack: " in out.getvalue()
    shown, prompt, answer = on_a_terminal("--puzzle", "2", keys=b"\n").partition("Press Enter for the answer.")
    assert prompt
    assert "Rack: " in shown
    assert "Steps" not in shown
    assert "Steps" in answer
    end_of_file = b"\x04"
    assert on_a_terminal("--puzzle", "2", keys=end_of_file).rstrip().endswith("Press Enter for the answer.")


def test_each_day_has_another_puzzle(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for day in (*range(30), COUNT):
        today = date(2027, 1, 1) + timedelta(days=day)
        monkeypatch.setattr("service.cli.analyze.date", Mock(today=lambda today=today: today))
        service.cli.analyze.main([], lambda *_: BestTurn(None, is_proven=True, is_least_change=True))
        shown.append(capsys.readouterr().out.splitlines()[0])
    assert len(set(shown)) == 30
    assert shown[0] == shown[-1]


def test_tiles_may_be_in_lower_case_and_separated_by_commas() -> None:
    plain = analyze("[R4 J R6] | [B9 K9 O9] + *{R5 O11 O12 B1}")
    assert analyze("[r4,j,r6] | [b9, k9, o9] + *{R5,o11 , O12 b1}") == plain
    assert analyze("[3h,4h,5h] + *{6h,*}", "--cards") == analyze("[3H 4H 5H] + *{6H *}", "--cards")


def test_the_answer_is_printed_as_json() -> None:
    position = {"table": ["[R3 R4 R5]"], "rack": ["R6", "B1"], "has_melded": True, "river": []}
    ran = analyze("[R3 R4 R5] + *{R6 B1}", "--json")
    assert ran.status == 0
    assert json.loads(ran.out) == {
        "position": position,
        "objective": "MOST_TILES",
        "play_exists": "YES",
        "is_best": True,
        "is_least_change": True,
        "tiles_played": ["R6"],
        "rack_left": ["B1"],
        "goes_out": False,
        "table": ["[R3 R4 R5 R6]"],
        "steps": ["Put R6 from the rack to meld 1: [R3 R4 R5 R6]"],
    }
    none = json.loads(analyze("[R3 R4 R5] + *{B1}", "--json", "--objective", "highest-value").out)
    assert none == {
        "position": {**position, "rack": ["B1"]},
        "objective": "HIGHEST_VALUE",
        "play_exists": "NO",
    }
    river = analyze("[R3 R4 R5] + *{R7}", "--json", "--option", "turn_draw=TWO_RIVER", "--river", "B1 R6 K2")
    assert (json.loads(river.out)["tiles_played"], json.loads(river.out)["rack_left"]) == (["R6", "R7"], ["K2"])


def test_a_full_position_is_analyzed_for_the_player_to_move() -> None:
    position = "[R3 R4 R5] | [B6 K6 O6] / 1*{R2 B5} 2{K1 J} / {R7 O8} / "
    assert "Best turn: play R2\n" in analyze(f"{position}1").out
    assert "There is no legal turn: nothing can be played." in analyze(f"{position}2").out
    unmelded = "[R3 R4 R5] | [B6 K6 O6] / 1{R2 B5} 2{K1 J} / {R7 O8} / 1"
    assert "There is no legal turn" in analyze(unmelded).out == analyze(unmelded, "--unmelded").out


def test_an_empty_table_and_an_initial_meld_are_printed() -> None:
    ran = analyze(". + {R10 B10 K10 R1}", "--unmelded")
    assert "Table\n     empty\n" in ran.out
    assert "  1. Lay R10 B10 K10 from the rack for the new meld [R10 B10 K10]\n" in ran.out
    assert "There is no legal turn" in analyze(". + {R9 B9 K9 R1}", "--unmelded").out
    assert "Rack: empty" in analyze("[R3 R4 R5] + *{}").out


def test_the_rules_and_the_objective_can_be_chosen() -> None:
    wraps = "[R11 R12 R13] + *{R1}"
    assert "There is no legal turn" in analyze(wraps).out
    assert "Best turn: play R1\n" in analyze(wraps, "--preset", "machiavelli").out
    assert "Best turn: play R1\n" in analyze(wraps, "--option", "run_wrap=CYCLIC").out
    long_or_high = ". + *{R1 R2 R4 R5 K12 K13 J}"
    assert "Best turn: play R1 R2 R4 R5 J\n" in analyze(long_or_high).out
    high = analyze(long_or_high, "--objective", "highest-value").out
    assert "Best turn: play K12 K13 J\n" in high
    assert "No turn plays a higher value" in high


def test_the_pull_from_the_river_is_the_first_step() -> None:
    ran = analyze("[R3 R4 R5] + *{R7}", "--option", "turn_draw=TWO_RIVER", "--river", "B1 R6 K2")
    assert "River: B1 R6 K2\n" in ran.out
    assert "Best turn: play R6 R7\nRack then: K2\n" in ran.out
    assert "  1. Pull R6 K2 from the River; R6 is to be played\n" in ran.out


def test_cards_are_printed_with_their_own_names() -> None:
    ran = analyze("[3H 4H 5H] + *{6H *}", "--cards")
    assert "Best turn: play 6H *\n" in ran.out


@pytest.mark.parametrize(
    ("is_found", "is_proven", "is_late", "says"),
    [
        (False, False, True, "No turn was found in time, but one may exist; increase --budget-ms."),
        (False, False, False, "No turn was found, but one may exist: not all turns of this game can be searched."),
        (True, False, True, "There may be a turn that plays more tiles: time ran out."),
        (True, False, False, "There may be a turn that plays more tiles: not all turns of this game can be searched."),
        (True, True, False, "No turn plays more tiles; an equally good one may leave more melds unchanged."),
    ],
)
def test_unproven_results_are_marked(
    *, is_found: bool, is_proven: bool, is_late: bool, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def search(situation: AnySituation, objective: Objective, budget: Budget) -> BestTurn:
        assert isinstance(situation, Situation)
        found = best_turn(situation, objective, budget)
        while is_late and budget.is_over and not budget.is_over():
            time.sleep(0.01)
        return BestTurn(found.turn if is_found else None, is_proven, is_least_change=False)

    limit = ["--budget-ms", "200"] if is_late else []
    service.cli.analyze.main(["[R3 R4 R5] + *{R6}", *limit], search)
    assert f"{says}\n" in capsys.readouterr().out


def test_tiles_are_colored_only_on_terminals_with_colors() -> None:
    position = "[R3 J R5] + *{R6 B6}"
    shown = on_a_terminal(position, NO_COLOR="")
    assert "\x1b[31mR3\x1b[0m" in shown
    assert "\x1b[34mB6\x1b[0m" in shown
    plain = analyze(position).out
    assert "\x1b" not in plain
    assert "\x1b" not in on_a_terminal(position, "--json", NO_COLOR="")
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == plain
    assert on_a_terminal(position, NO_COLOR="1") == plain
    assert on_a_terminal(position, NO_COLOR="", TERM="dumb") == plain


def test_cards_are_colored_too() -> None:
    shown = on_a_terminal("[3H 4H 5H] + *{6H *}", "--cards", NO_COLOR="")
    assert "\x1b[31m6H\x1b[0m" in shown
    assert "*\x1b[0m" in shown


WRONG = {
    "no position": (
        (".",),
        "column 1: a part is missing: expected table + *{rack}, or table / racks / pool / seat",
    ),
    "no meld": (
        ("[R1 R2 R4] + *{R5}",),
        "meld 1 of the table, [R1 R2 R4], is not a meld: the values of a run must ascend by exactly one",
    ),
    "a meld in another order": (
        ("[R3 R4 R5] | [R7 R6 R8] + *{R5}",),
        "meld 2 of the table, [R7 R6 R8], is not a meld: "
        "the values of a run must ascend from left to right; as a meld: R6 R7 R8",
    ),
    "no tile": (
        ("[R1 R2 R3] + *{R14}",),
        "column 16: 'R14' is not a tile: expected a color R, B, K, O, G or P with a value 1 to 13, J, D, M, C or F",
    ),
    "neither melded nor unmelded": (
        ("[R1 R2 R3] + {R4}",),
        "the position does not say whether the player has made the initial meld: write * before the rack if so, "
        "else add --unmelded",
    ),
    "melded and unmelded": (
        ("[R1 R2 R3] + *{R4}", "--unmelded"),
        "--unmelded contradicts the * of the rack: its player has made the initial meld",
    ),
    "melded and unmelded in a full position": (
        ("[R1 R2 R3] / 1*{R4} / {} / 1", "--unmelded"),
        "--unmelded contradicts the * of the rack: its player has made the initial meld",
    ),
    "a record as JSON": (
        ("--record", "no.txt", "--json"),
        "--json is for positions; for programs, the service reviews records (ReviewGame)",
    ),
    "no rack": (("[R1 R2 R3] + R4",), "column 14: 'R4' is not a rack: expected {tiles}"),
    "no tile of the River": (
        (".+*{}", "--river", "R1 X"),
        "--river: column 4: 'X' is not a tile: expected a color R, B, K, O, G or P with a value 1 to 13, "
        "J, D, M, C or F",
    ),
    "tiles of other games": (("[R1 R2 R3] + *{G4}",), "G4 occurs 1 times; the tile set has it 0 times"),
    "tiles too often": (("[R1 R2 R3] + *{R1 R1}",), "R1 occurs 3 times; the tile set has it 2 times"),
    "tiles too often elsewhere": ((". / 1*{R1} 2{R1} / {R1} / 1",), "R1 occurs 3 times; the tile set has it 2 times"),
    "nobody's turn": ((". / 1*{R1} / {} / 2",), "column 19: '2' is the seat to move, but has no rack"),
    "a seat twice": ((". / 1*{R1} 1*{R2} / {} / 1",), "column 12: '1' has two racks: expected one of each seat"),
    "no preset": ((".+*{}", "--preset", "sabr"), "--preset sabr: unknown preset; did you mean SABRA?"),
    "no option": (
        (".+*{}", "--option", "runwrap=OFF"),
        "--option runwrap=OFF: unknown option 'runwrap'; did you mean run_wrap?",
    ),
    "no option at all": (
        (".+*{}", "--option", "zzz"),
        "--option zzz: unknown option 'zzz'; docs/options.md lists all options",
    ),
    "no value": (
        (".+*{}", "--option", "run_wrap=UP"),
        "--option run_wrap=UP: invalid value 'UP' for run_wrap: expected OFF or ONE_HIGH or CYCLIC",
    ),
    "no truth": (
        (".+*{}", "--option", "jokers_may_lead=2"),
        "--option jokers_may_lead=2: invalid value '2' for jokers_may_lead: expected FALSE or TRUE",
    ),
    "no number": (
        (".+*{}", "--option", "geometry_copies=two"),
        "--option geometry_copies=two: invalid value 'two' for geometry_copies: expected a number",
    ),
    "a number out of range": (
        (".+*{}", "--option", "geometry_copies=9"),
        "--option geometry_copies: the value of the option is out of range (9): expected 2 or 3",
    ),
    "a number out of a wide range": (
        (".+*{}", "--option", "score_joker_penalty=101"),
        "--option score_joker_penalty: the value of the option is out of range (101): expected 0 to 100",
    ),
    "a number between those in range": (
        (".+*{}", "--option", "geometry_colors=5"),
        "--option geometry_colors: the value of the option is out of range (5): expected 4 or 6",
    ),
    "options that conflict": (
        (".+*{}", "--option", "match_rounds=3"),
        "--option match_rounds and match_end: the options conflict (3); docs/options.md lists the conflicts",
    ),
    "no River": (
        ("[R1 R2 R3] + *{R4}", "--river", "R5"),
        "--river: these rules have no River; add --option turn_draw=TWO_RIVER",
    ),
    "cards of no color": (
        ("[3H 4H 5H] + *{G6}", "--cards"),
        "column 16: 'G6' is not a card: expected a rank A, 2 to 10, J, Q or K with a suit H, D, C or S, or *",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_is_printed_in_one_line(name: str) -> None:
    arguments, message = WRONG[name]
    assert analyze(*arguments) == Ran(2, "", f"rummikub-analyze: {message}\n")


def test_a_closed_output_pipe_is_not_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        ran = subprocess.run(
            [*COMMAND, "[R3 R4 R5] + *{R6}"], cwd=ROOT, stdout=gone, stderr=subprocess.PIPE, check=False
        )
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("to", "status", "error"),
    [
        (">/dev/full", 1, "rummikub-analyze: cannot write the answer: No space left on device\n"),
        (">&-", 0, ""),
    ],
    ids=["full", "closed"],
)
def test_a_write_error_on_the_output_prints_no_traceback(to: str, status: int, error: str) -> None:
    shell = ["/bin/sh", "-c", f'exec "$@" {to}', "sh"]
    ran = subprocess.run(
        [*shell, *COMMAND, "[R3 R4 R5] + *{R6}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (status, error)


def test_ctrl_c_ends_a_search_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def search(*_: object) -> BestTurn:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as end:
        service.cli.analyze.main([".+*{R1}"], search)
    assert end.value.code == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "ten", "9999999"])
def test_a_budget_must_be_a_number_of_milliseconds(text: str) -> None:
    ran = analyze(".+*{}", f"--budget-ms={text}")
    assert ran.status == 2
    assert f"argument --budget-ms: '{text}' is not a number of milliseconds from 1 to 600000" in ran.error


def test_the_example_in_the_help_works() -> None:
    text = analyze("--help").out
    example = re.search(r'rummikub-analyze "(.*)"', text)
    assert example
    assert "Best turn: play" in analyze(example[1]).out


# Records


def example_record() -> str:
    """Returns the example of docs/record.md."""
    return (ROOT / "docs/record.md").read_text().partition("```text\n")[2].partition("```")[0]


def test_a_record_is_reviewed_move_by_move(tmp_path: Path) -> None:
    file = tmp_path / "game.txt"
    file.write_text(example_record())
    ran = analyze("--record", str(file))
    assert (ran.status, ran.error) == (0, "")
    assert "    5 Ben: draw; nothing could be played" in ran.out
    assert "   11 Ben: play 3 tiles; nothing was better" in ran.out
    assert re.search(r"^Ada missed [0-9]+ tiles$", ran.out, re.MULTILINE)
    missed = [int(number) for number in re.findall("gains ([0-9]+) tiles more", ran.out)]
    assert sum(missed) == sum(int(number) for number in re.findall("missed ([0-9]+) tiles", ran.out))


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("play [K9 K10 K11]\n", "play [K9 X K11]\n", "line 15, column 22: 'X' is not a tile"),
        (
            "11 10.000 2 play [K9 K10 K11]\n",
            "11 10.000 1 play [K9 K10 K11]\n",
            "revision 11: it is seat 2's turn",
        ),
        ("end WENT_OUT 1:40 2:-40", "end WENT_OUT 1:41 2:-41", "round 1 ended WENT_OUT with the points"),
    ],
)
def test_an_invalid_record_is_refused_with_its_place(tmp_path: Path, old: str, new: str, error: str) -> None:
    file = tmp_path / "game.txt"
    assert old in example_record()
    file.write_text(example_record().replace(old, new, 1))
    ran = analyze("--record", str(file))
    assert ran.status == 2
    assert f"{file}: {error}" in ran.error


def test_a_record_that_cannot_be_read_is_named() -> None:
    assert analyze("--record", "/nowhere").error.endswith("/nowhere: cannot be read: No such file or directory\n")


def test_a_record_of_another_family_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "okey.txt"
    file.write_text(format_record(recorded(list(random_changes(1)))))
    ran = analyze("--record", str(file))
    assert (ran.status, ran.out) == (2, "")
    assert ran.error.endswith(f"{file}: only records of melding games are reviewed\n")
