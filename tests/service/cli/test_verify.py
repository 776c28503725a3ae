"""The command `rummikub-verify`: what it prints and its exit status, for a fair game, a forged one, and other files."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.actions import AbortGame, Join, StartGame
from engine.fair_deal import commitment_to, seed_of, shuffle_for
from engine.melding.ruleset import SABRA
from engine.record import GameRecord, record_of
from engine.record_text import format_record
from engine.room_settings import DEFAULT_SETTINGS, FairDeal
from engine.seats import HOST
from engine.turns import Applied, apply, create
from service.cli.verify import main

SECRET = bytes(32)


def a_record(*, is_fair: bool = True) -> GameRecord:
    """Returns the record of a game that was aborted after its deal."""
    settings = replace(DEFAULT_SETTINGS, fair_deal=FairDeal.COMMITTED)
    applied = create(SABRA, settings, deal_commitment=commitment_to(SECRET) if is_fair else b"")
    changes = [(1, 1_000, applied.events)]
    for step in range(4):
        action = (
            Join("Ada", deal_seed=b"of Ada", is_host=True),
            Join("Ben"),
            StartGame(HOST, shuffle_for(applied.game, seed_of(SECRET, 1))),
            AbortGame(HOST),
        )[step]
        outcome = apply(applied.game, action, 2_000)
        assert isinstance(outcome, Applied)
        applied = outcome
        changes.append((applied.game.revision, 2_000, applied.events))
    return record_of(changes)


def verified(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Returns the exit status and the lines of the command."""
    file = folder / "game.txt"
    file.write_text(text, encoding="utf-8")
    status = 0
    try:
        main([str(file)])
    except SystemExit as ended:
        status = int(ended.code or 0)
    output = capsys.readouterr()
    return status, (output.out + output.err).splitlines()


def test_a_fair_game_has_a_line_for_each_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = verified(tmp_path, format_record(a_record()), capsys)
    assert status == 0
    assert [line.split(":")[0] for line in lines] == [
        "ok      deal 1, revision 4",
        f"ok      commitment {commitment_to(SECRET).hex()}",
        "ok      moves",
        "ok      scores",
    ]
    assert lines[0].endswith("follows from the seeds of the server and seat 1")


def test_a_forged_deal_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = a_record()
    forged = replace(record, players=(replace(record.players[0], deal_seed=b"of Eve"), record.players[1]))
    status, lines = verified(tmp_path, format_record(forged), capsys)
    assert (status, lines) == (1, ["FAILED  revision 4: the deal does not follow from the seeds"])


def test_a_game_without_a_commitment_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = replace(a_record(), deal_commitment=b"", deal_seed=b"")
    status, lines = verified(tmp_path, format_record(record), capsys)
    assert (status, lines[-1]) == (1, "FAILED  the record has no commitment: its deals cannot be checked")
    assert [line[:8] for line in lines[:-1]] == ["ok      "] * 2


def test_a_file_that_is_no_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = verified(tmp_path, "no record", capsys)
    assert status == 2
    assert "line 1" in lines[-1]
