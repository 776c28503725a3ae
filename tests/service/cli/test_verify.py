"""The command `rummikub-verify`: what it prints and its exit status, for a fair game, a forged one, and other files."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.actions import AbortGame, Action, Join, StartGame, StartNextRound
from engine.fair_deal import DEALS_MAX, commitment_to, seed_of, shuffle_for
from engine.game import Game, Lobby, RoundOver
from engine.melding.actions import DrawTile, Pass, RequestRedeal
from engine.melding.deal import may_demand_redeal, turn_order
from engine.melding.events import RoundStarted
from engine.melding.game import round_of
from engine.melding.ruleset import SABRA, DealThreePairsReshuffle, MatchEnd, TurnDirection, with_options
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


def a_long_record() -> GameRecord:
    """Returns the record of a game with a deal more than there are seeds: one for each demand, from many players."""
    chosen = {"deal_three_pairs_reshuffle": DealThreePairsReshuffle.ON_REQUEST, "match_end": MatchEnd.FIXED_ROUNDS}
    tiles = {"geometry_copies": 3, "geometry_jokers": 8, "players_max": 6, "deal_hand_size": 21, "match_rounds": 100}
    rules = with_options(SABRA, {**chosen, **tiles})
    settings = replace(DEFAULT_SETTINGS, fair_deal=FairDeal.COMMITTED, turn_time_limit_seconds=0)
    game = create(rules, settings, deal_commitment=commitment_to(SECRET)).game
    changes = [(1, 1_000, create(rules, settings, deal_commitment=commitment_to(SECRET)).events)]

    def do(action: Action) -> Game:
        outcome = apply(game, action, 2_000)
        assert isinstance(outcome, Applied), outcome
        changes.append((outcome.game.revision, 2_000, outcome.events))
        return outcome.game

    for seat in range(1, 7):
        game = do(Join(f"player {seat}", is_host=seat == 1))
    deals = 0
    while deals <= DEALS_MAX:
        shuffle = shuffle_for(game, seed_of(SECRET, game.deals + 1))
        match game.phase:
            case Lobby():
                action: Action = StartGame(HOST, shuffle)
            case RoundOver():
                action = StartNextRound(1, shuffle)
            case _:
                round_ = round_of(game)
                lucky = next((seat for seat in range(1, 7) if may_demand_redeal(round_, seat, rules)), 0)
                if lucky:
                    action = RequestRedeal(lucky, shuffle)
                else:
                    action = DrawTile(round_.turn.seat) if round_.pool else Pass(round_.turn.seat)
        game = do(action)
        deals += not isinstance(action, DrawTile | Pass)
    return record_of(changes)


def verified(folder: Path, text: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[str]]:
    """Returns the exit status and the lines of the command with some options."""
    file = folder / "game.txt"
    file.write_text(text, encoding="utf-8")
    status = 0
    try:
        main([str(file), *options])
    except SystemExit as ended:
        status = int(ended.code or 0)
    output = capsys.readouterr()
    return status, (output.out + output.err).splitlines()


def test_a_fair_game_has_a_line_for_each_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = verified(tmp_path, format_record(a_record()), capsys)
    assert status == 0
    assert [line.split(":")[0] for line in lines] == [
        f"compare commitment {commitment_to(SECRET).hex()}",
        "compare seed of seat 1",
        "compare seed of seat 2",
        "ok      deal 1, revision 4",
        f"ok      commitment {commitment_to(SECRET).hex()}",
        "ok      moves",
        "ok      scores",
    ]
    assert lines[1].endswith(b"of Ada".hex())
    assert lines[2].endswith("none")
    assert lines[3].endswith("follows from the seeds of the server and seat 1")


def test_what_was_noted_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--commitment", commitment_to(SECRET).hex(), "--seed", f"1={b'of Ada'.hex()}")
    status, lines = verified(tmp_path, format_record(a_record()), capsys, *options)
    assert status == 0
    assert lines[:2] == [
        f"ok      commitment {commitment_to(SECRET).hex()}: the one that was noted",
        f"ok      seed of seat 1: {b'of Ada'.hex()}: the one that was noted",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--commitment", "00" * 32), f"commitment {commitment_to(SECRET).hex()}: another one was noted, {'00' * 32}"),
        (("--seed", "1=0102"), f"seed of seat 1: {b'of Ada'.hex()}: another one was noted, 0102"),
        (("--seed", "2=0102"), "seed of seat 2: none: another one was noted, 0102"),
        (("--seed", "4=0102"), "seed of seat 4: none: another one was noted, 0102"),
    ],
)
def test_another_seed_or_commitment_than_the_noted_one_fails(
    options: tuple[str, ...], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = verified(tmp_path, format_record(a_record()), capsys, *options)
    assert status == 1
    assert [line for line in lines if line.startswith("FAILED")] == [f"FAILED  {expected}"]


@pytest.mark.parametrize("options", [("--seed", "0102"), ("--seed", "1=xy"), ("--commitment", "xy")])
def test_a_note_that_cannot_be_read(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = verified(tmp_path, format_record(a_record()), capsys, *options)
    assert status == 2
    assert "expected" in lines[-1]


def test_a_forged_deal_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = a_record()
    forged = replace(record, players=(replace(record.players[0], deal_seed=b"of Eve"), record.players[1]))
    status, lines = verified(tmp_path, format_record(forged), capsys)
    assert (status, lines[-1]) == (1, "FAILED  revision 4: the deal does not follow from the seeds")


def test_a_position_follows_from_no_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = a_record()
    dealt = record.moves[0].dealt
    assert isinstance(dealt, RoundStarted)
    order = turn_order((1, 2), 1, TurnDirection.CLOCKWISE)
    position = replace(record.moves[0], dealt=replace(dealt, draws=(), order=order, table=()))
    status, lines = verified(tmp_path, format_record(replace(record, moves=(position, *record.moves[1:]))), capsys)
    assert status == 1
    assert "FAILED  revision 4: the game began with a position, which follows from no seeds" in lines
    assert not [line for line in lines if line.startswith("ok      deal")]


def test_a_game_without_a_deal_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = verified(tmp_path, format_record(replace(a_record(), moves=(), deal_seed=b"")), capsys)
    assert status == 1
    assert "FAILED  no round was dealt: there is nothing to check" in lines


@pytest.mark.soak
def test_a_deal_without_a_seed_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = a_long_record()
    status, lines = verified(tmp_path, format_record(record), capsys)
    assert status == 1
    assert [line for line in lines if not line.startswith(("ok", "compare"))] == [
        f"FAILED  deal 1001, revision {record.moves[-1].revision}: without a seed, as a game has 1,000 of them"
    ]


def test_a_game_without_a_commitment_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = replace(a_record(), deal_commitment=b"", deal_seed=b"")
    status, lines = verified(tmp_path, format_record(record), capsys)
    assert (status, lines[0]) == (1, "FAILED  the record has no commitment: its deals cannot be checked")
    assert [line[:8] for line in lines[1:]] == ["ok      "] * 2


def test_a_file_that_is_no_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = verified(tmp_path, "no record", capsys)
    assert status == 2
    assert "line 1" in lines[-1]
