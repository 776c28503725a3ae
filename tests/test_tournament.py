"""`make tournament`: bots of the service and a program from outside play each other; the table and the JSON agree."""

import json
import sys
from pathlib import Path

import pytest

from rummikub.v1 import game_service_pb2 as gs
from support.harness import ROOT, GameAtHand, memory_store, new_id, running_server
from tools import tournament
from tools.tournament import PRESETS, Entrant, Results, interval, rules_for_two

pytestmark = pytest.mark.slow

EXAMPLE = f"mine={sys.executable} {ROOT / 'clients' / 'python' / 'examples' / 'bot.py'} mine"


def test_a_draw_is_half_a_win_and_all_points_are_counted() -> None:
    results, seats = Results(), (Entrant("EASY"), Entrant("HARD"))
    results.add(seats, [2])
    results.add(seats, [1, 2])
    results.add(seats, [])
    assert (results.total("EASY"), results.total("HARD")) == ((1.0, 3), (2.0, 3))


def test_the_interval_contains_the_share_and_shrinks() -> None:
    assert interval(0, 0) == (0.0, 1.0)
    assert interval(0, 10)[0] == 0.0
    few, many = interval(6, 10), interval(600, 1000)
    assert few[0] < many[0] < 0.6 < many[1] < few[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["EASY"],
        ["EASY", "EASY"],
        ["EASY", "GREAT"],
        ["EASY", "=prog"],
        ["EASY", "mine=/nonexistent"],
        ["EASY", "mine=python 'bot.py"],
        ["--games", "0"],
        ["--games", "many"],
        ["--at-once", "0"],
        ["--turn-seconds", "0"],
        ["--json", "/nonexistent/results.json"],
    ],
)
def test_other_arguments_are_refused_before_a_server_starts(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        tournament.parsed(arguments)
    assert "expected" in capsys.readouterr().err


@pytest.mark.parametrize("preset", ["NOPE", "OKEY_PARTNERS"])
def test_other_presets_are_refused(preset: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tournament.parsed(["--preset", preset])
    assert "choose from" in capsys.readouterr().err


async def test_two_can_start_a_game_by_each_preset() -> None:
    async with running_server(memory_store()) as (_, client):
        for preset in PRESETS.values():
            rules = rules_for_two(preset)
            created = await client.games.CreateGame(gs.CreateGameRequest(ruleset=rules, request_id=new_id()))
            game = GameAtHand(client, created.game.game_id, host_token=created.host_token)
            await game.join("Ada")
            await game.join("Ben")
            assert (await game.start()).turn.seat


def test_a_round_robin_with_a_program_from_outside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.json"
    tournament.main(["EASY", "HARD", EXAMPLE, "--games", "1", "--json", str(file)])
    rows = {row["name"]: row for row in json.loads(file.read_text())["entrants"]}
    assert {name: row["games"] for name, row in rows.items()} == {"EASY": 2, "HARD": 2, "mine": 2}
    assert sum(row["points"] for row in rows.values()) == 3
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]} == {"EASY", "HARD", "mine"}


def test_a_program_that_does_not_come_loses(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    idle = f"idle={sys.executable} -c pass"
    tournament.main(["EASY", idle, "--games", "1", "--join-seconds", "0.5", "--json", str(file)])
    assert [row["points"] for row in json.loads(file.read_text())["entrants"]] == [1.0, 0.0]
