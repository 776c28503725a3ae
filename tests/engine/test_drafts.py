from dataclasses import replace

import pytest

from engine.actions import Resign
from engine.game import Game
from engine.melding.actions import DrawTile
from engine.melding.drafts import Draft
from engine.melding.melds import MeldKind, ProposedMeld
from engine.melding.notation import parse_melds
from engine.melding.ruleset import SABRA, Ruleset, TurnDraw, TurnPlayAfterDraw, WinCall
from engine.melding.turns import arrange
from engine.notation import parse_tiles
from engine.tiles import JOKER
from engine.violations import Reason, Refused, Violation
from support.positions import NOW, do, game_at, lobby, play

LATE = NOW + 120_001
RIVER = replace(SABRA, turn_draw=TurnDraw.TWO_RIVER)
POSITION = "[R4 R5 R6] | [B1 K1 O1] / 1*{R7 R7 B2} 2*{K1} / {O9} / 1"


def arranged(table: str, game: Game | None = None, seat: int = 1, now_ms: int = NOW) -> Draft | Refused:
    return arrange(game or game_at(POSITION), seat, parse_melds(table), now_ms)


def reason_of(outcome: Draft | Refused) -> Reason:
    assert isinstance(outcome, Refused)
    return outcome.reason


@pytest.mark.parametrize(
    ("table", "is_legal"),
    [
        ("[R4 R5 R6 R7] | [B1 K1 O1]", True),
        ("[R4 R5 R6] | [B1 K1 O1]", False),
        ("[R4 R5] | [R6 R7 B2] | [B1 K1 O1]", False),
        ("[R4 R5 R6 R7]", False),
        ("[R7 R7]", False),
        (".", False),
    ],
    ids=["a play", "untouched", "unfinished", "tiles in hand", "rack only", "all in hand"],
)
def test_a_draft_shows_tiles_of_table_and_rack(table: str, is_legal: bool) -> None:
    assert arranged(table) == Draft(1, 0, parse_melds(table), is_legal)


def test_a_draft_belongs_to_the_turn_in_progress() -> None:
    game = do(game_at(POSITION), DrawTile(1)).game
    draft = arranged("[K1]", game, seat=2)
    assert isinstance(draft, Draft)
    assert (draft.seat, draft.turn_revision) == (2, game.revision)


def test_a_draft_keeps_what_its_player_states() -> None:
    table = (ProposedMeld(parse_tiles("R4 R5 R6 R7"), MeldKind.RUN), ProposedMeld(parse_tiles("B1 K1 O1")))
    draft = arrange(game_at(POSITION), 1, table, NOW)
    assert draft == Draft(1, 0, table, is_legal=True)


@pytest.mark.parametrize(
    ("table", "violations"),
    [
        ("[R4 R5 R6] | [B1 K1 O1 K2]", [(Reason.TILE_NOT_IN_RACK, "K2")]),
        ("[R7 R7 R7]", [(Reason.TILE_DUPLICATED, "R7")]),
        ("[R4 R4]", [(Reason.TILE_NOT_IN_RACK, "R4")]),
        ("[O9 J]", [(Reason.TILE_NOT_IN_RACK, "O9 J")]),
        ("[R7 R7 R7 K2]", [(Reason.TILE_DUPLICATED, "R7"), (Reason.TILE_NOT_IN_RACK, "K2")]),
    ],
    ids=["another rack's or the pool's", "twice", "a second copy", "a joker", "both"],
)
def test_a_draft_shows_no_other_tile(table: str, violations: list[tuple[Reason, str]]) -> None:
    expected = tuple(Violation(reason, "draft.table", parse_tiles(tiles)) for reason, tiles in violations)
    assert arranged(table) == Refused(expected)


def test_a_draft_shows_no_tile_that_the_game_lacks() -> None:
    without_jokers = replace(SABRA, geometry_jokers=0)
    outcome = arranged("[R7 J]", game_at(POSITION, without_jokers))
    assert outcome == Refused((Violation(Reason.TILE_UNKNOWN, "draft.table", (JOKER,)),))


@pytest.mark.parametrize("river", ["K5 K6", "K6 K5"])
def test_a_draft_may_show_tiles_of_the_river_and_is_then_no_play(river: str) -> None:
    game = game_at(". / 1*{K4 K7} 2{K1} / {O9} / 1", RIVER, river=river)
    assert arranged("[K4 K5 K6 K7]", game) == Draft(1, 0, parse_melds("[K4 K5 K6 K7]"), is_legal=False)
    assert reason_of(arranged("[K5 K5]", game)) is Reason.TILE_DUPLICATED


@pytest.mark.parametrize(
    ("ruleset", "is_legal"),
    [(SABRA, True), (replace(SABRA, win_call=WinCall.REQUIRED), False)],
    ids=["no call needed", "a call needed"],
)
def test_a_draft_does_not_call_the_win(ruleset: Ruleset, is_legal: bool) -> None:
    draft = arranged("[R4 R5 R6 R7]", game_at("[R4 R5 R6] / 1*{R7} 2{K1} / {O9} / 1", ruleset))
    assert isinstance(draft, Draft)
    assert draft.is_legal == is_legal


def test_a_draft_with_the_tile_just_drawn_may_be_no_play() -> None:
    others = replace(SABRA, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES)
    game = do(game_at("[R4 R5 R6] / 1*{B2} 2{K1} / {R7 O9} / 1", others), DrawTile(1)).game
    draft = arranged("[R4 R5 R6 R7]", game)
    assert isinstance(draft, Draft)
    assert not draft.is_legal


def test_only_the_player_with_the_turn_arranges_the_table() -> None:
    game = game_at(POSITION)
    assert reason_of(arranged(".", game, seat=2)) is Reason.NOT_YOUR_TURN
    assert reason_of(arranged(".", game, now_ms=LATE)) is Reason.TURN_TIMED_OUT
    assert isinstance(arranged(".", game, now_ms=NOW + 120_000), Draft)
    resigned = do(game_at(". / 1{R7} 2{K1} 3{B9} / {O9} / 1"), Resign(2)).game
    assert reason_of(arranged(".", resigned, seat=2)) is Reason.PLAYER_RESIGNED


def test_a_river_choice_comes_first() -> None:
    game = do(game_at(". / 1*{R7} 2{K1} / {O9 R1 B2} / 1", RIVER), DrawTile(1)).game
    assert reason_of(arranged(".", game)) is Reason.RIVER_CHOICE_PENDING


def test_a_table_is_arranged_only_in_a_round() -> None:
    assert reason_of(arranged(".", lobby("Ada", "Ben"))) is Reason.GAME_NOT_STARTED
    out = do(game_at("[R4 R5 R6] / 1*{R7} 2{K1} / {O9} / 1"), play(1, "[R4 R5 R6 R7]")).game
    assert reason_of(arranged(".", out)) is Reason.GAME_OVER
