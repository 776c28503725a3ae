from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from engine.actions import Action, Join, Resign, StartGame, StartNextRound, TimeOut
from engine.deal import Shuffle
from engine.events import Event, GameEnded, PlayerResigned, RoundEnded, TurnStarted, TurnTimedOut
from engine.game import (
    Finished,
    Game,
    Playing,
    RoundEnd,
    RoundOver,
)
from engine.melding.actions import ClaimError, DrawTile, LayOnRiver, Pass, PlayTiles, RequestRedeal
from engine.melding.analysis import AnySituation, Existence, Situation
from engine.melding.events import (
    ErrorClaimed,
    IllegalPlayShown,
    LastChanceStarted,
    RedealDemanded,
    RiverTileLaid,
    RoundStarted,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnEnded,
    TurnPassed,
    TurnPenalised,
)
from engine.melding.notation import parse_melds
from engine.melding.round import Choosing, Drawn, Open, ShownPlay
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    SABRA,
    Contract,
    DealThreePairsReshuffle,
    MatchEnd,
    PoolEmptyLastChanceStart,
    PoolEmptyMode,
    PoolEmptyPass,
    PoolEmptyStuckTest,
    Ruleset,
    ScoreNeverMelded,
    StartDrawDetermines,
    Teams,
    TurnDraw,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
    TurnTimeoutClean,
    TurnTimeoutDirty,
    TurnVoluntaryDraw,
    WinCall,
)
from engine.melding.table import melds_of
from engine.notation import format_tiles, parse_tile, parse_tiles
from engine.replay import advance
from engine.seats import Turn
from engine.tiles import tile_set
from engine.turns import Applied, create, may_have_searched_all_racks
from engine.violations import Reason
from support.positions import NOW, do, game_at, is_a, lobby, only_reason, play, position, refusal

LATE = NOW + 120_001
RIVER = replace(SABRA, turn_draw=TurnDraw.TWO_RIVER)
GOES_ON = replace(SABRA, turn_play_after_draw=TurnPlayAfterDraw.ALLOWED)
OTHER_TILES = replace(SABRA, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES)
PENALISE = replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE)
CLAIMS = replace(SABRA, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM)
REVERT = replace(SABRA, turn_timeout_dirty=TurnTimeoutDirty.REVERT_AND_DRAW_PENALTY)
LAST_CHANCE = replace(SABRA, pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE)
DRAWER_LAST = replace(LAST_CHANCE, pool_empty_last_chance_start=PoolEmptyLastChanceStart.NEXT_PLAYER_FIRST)
AT_ONCE = replace(SABRA, pool_empty_mode=PoolEmptyMode.END_IMMEDIATELY)
REDEAL = replace(SABRA, deal_three_pairs_reshuffle=DealThreePairsReshuffle.ON_REQUEST, deal_hand_size=7)


def round_of(game: Game) -> Round:
    return is_a(game.round, Round)


def kinds(applied: Applied) -> list[type]:
    return [type(event) for event in applied.events]


def turn_of(game: Game) -> int:
    return is_a(game.phase, Playing).round.turn.seat


# The River


def test_two_tiles_are_drawn_and_one_is_laid_on_the_river() -> None:
    game = game_at(". / 1*{R7} 2{K1} / {O9 R1 B2} / 1", RIVER, passed=(2,), river="K5")
    drawn = do(game, DrawTile(1))
    assert drawn.events == (TilesOffered(1, (parse_tile("O9"), parse_tile("R1"))),)
    assert position(drawn.game) == ". / 1*{R7} 2{K1} / {B2} / 1"
    assert (round_of(drawn.game).step, round_of(drawn.game).passed) == (Choosing(parse_tiles("O9 R1")), ())  # type: ignore[arg-type] # two tiles
    assert round_of(drawn.game).tiles == round_of(game).tiles
    laid = do(drawn.game, LayOnRiver(1, parse_tile("O9")))
    assert kinds(laid) == [RiverTileLaid, TurnStarted]
    assert position(laid.game) == ". / 1*{R1 R7} 2{K1} / {B2} / 2"
    assert round_of(laid.game).river == parse_tiles("K5 O9")
    assert round_of(laid.game).step == Open()


def test_equal_tiles_are_interchangeable() -> None:
    drawn = do(game_at(". / 1*{R7} 2{K1} / {O9 O9} / 1", RIVER), DrawTile(1)).game
    laid = do(drawn, LayOnRiver(1, parse_tile("O9"))).game
    assert (round_of(laid).river, round_of(laid).rack(1).tiles) == (parse_tiles("O9"), parse_tiles("R7 O9"))


def test_the_last_tile_of_the_pool_is_kept() -> None:
    drawn = do(game_at(". / 1*{R7} 2{K1} / {O9} / 1", RIVER), DrawTile(1))
    assert kinds(drawn) == [TileDrawn, TurnStarted]
    assert round_of(drawn.game).river == ()


def test_a_pending_river_choice_blocks_other_actions() -> None:
    game = do(game_at(". / 1*{R7} 2{K1} / {O9 R1 B2} / 1", RIVER), DrawTile(1)).game
    for action in (DrawTile(1), Pass(1), PlayTiles(1, ())):
        assert only_reason(game, action) is Reason.RIVER_CHOICE_PENDING
    assert only_reason(game, LayOnRiver(1, parse_tile("R7"))) is Reason.RIVER_DISCARD_NOT_DRAWN
    assert only_reason(game, LayOnRiver(2, parse_tile("O9"))) is Reason.NOT_YOUR_TURN


def test_a_player_without_a_draw_has_no_river_choice() -> None:
    for ruleset in (RIVER, SABRA):
        game = game_at(". / 1*{R7} 2{K1} / {O9 R1} / 1", ruleset, river="K5")
        assert only_reason(game, LayOnRiver(1, parse_tile("K5"))) is Reason.TURN_PHASE_WRONG


def test_a_pull_plays_the_key_and_racks_the_plunder() -> None:
    game = game_at("[R4 R5 R6] / 1*{B1} 2{K1} / {O9} / 1", RIVER, river="K5 R7 O1 B2")
    table = parse_melds("[R4 R5 R6 R7]")
    pulled = do(game, PlayTiles(1, table, river_index=1))
    played = is_a(pulled.events[0], TilesPlayed)
    assert (played.tiles, played.pulled) == (parse_tiles("R7"), parse_tiles("R7 O1 B2"))
    assert position(pulled.game) == "[R4 R5 R6 R7] / 1*{B1 B2 O1} 2{K1} / {O9} / 2"
    assert round_of(pulled.game).river == parse_tiles("K5")
    assert round_of(pulled.game).tiles == round_of(game).tiles


def test_a_failed_pull_changes_nothing() -> None:
    game = game_at("[R4 R5 R6] / 1*{B1} 2{K1} / {O9} / 1", RIVER, river="K5 R7")
    table = parse_melds("[R4 R5 R6 R7]")
    violations = refusal(game, PlayTiles(1, table, river_index=2)).violations
    assert violations[-1].reason is Reason.RIVER_INDEX_OUT_OF_RANGE
    violations = refusal(game, PlayTiles(1, table, river_index=0)).violations
    assert [violation.reason for violation in violations] == [
        Reason.NO_RACK_TILE_PLAYED,
        Reason.RIVER_KEY_NOT_PLAYED,
        Reason.RIVER_PLUNDER_PLAYED,
    ]


def test_plunder_keeps_a_player_from_going_out() -> None:
    game = game_at("[R4 R5 R6] / 1*{R8} 2{K1} / {O9} / 1", RIVER, river="R7 O1")
    assert turn_of(do(game, PlayTiles(1, parse_melds("[R4 R5 R6 R7 R8]"), river_index=0)).game) == 2
    game = game_at("[R4 R5 R6] / 1*{R8} 2{K1} / {O9} / 1", RIVER, river="O1 R7")
    out = do(game, PlayTiles(1, parse_melds("[R4 R5 R6 R7 R8]"), river_index=1))
    assert isinstance(out.game.phase, Finished)


def test_the_river_can_be_pulled_from_when_the_pool_is_empty() -> None:
    game = game_at("[R4 R5 R6] / 1*{B1} 2{K1} / {} / 1", RIVER, passed=(2,), river="R7")
    do(game, PlayTiles(1, parse_melds("[R4 R5 R6 R7]"), river_index=0))
    assert only_reason(game, DrawTile(1)) is Reason.POOL_EMPTY
    assert kinds(do(game, Pass(1))) == [TurnPassed, RoundEnded, GameEnded]


def test_a_pending_choice_that_runs_out_of_time_keeps_the_first_tile() -> None:
    game = do(game_at(". / 1*{R7} 2{K1} / {O9 R1 B2} / 1", RIVER), DrawTile(1)).game
    assert only_reason(game, LayOnRiver(1, parse_tile("O9")), LATE) is Reason.TURN_TIMED_OUT
    late = do(game, TimeOut(), LATE)
    assert late.events[:2] == (TurnTimedOut(1, ()), RiverTileLaid(1, parse_tile("R1")))
    assert position(late.game) == ". / 1*{R7 O9} 2{K1} / {B2} / 2"
    assert (round_of(late.game).river, round_of(late.game).passed) == (parse_tiles("R1"), ())


def test_a_resignation_during_a_river_choice_removes_both_tiles() -> None:
    game = do(game_at(". / 1*{R7} 2{K1} 3{B9} / {O9 R1 B2} / 1", RIVER), DrawTile(1)).game
    left = do(game, Resign(1)).game
    assert position(left) == ". / 1*{R1 R7 O9} 2{K1} 3{B9} / {B2} / 2"
    assert round_of(left).step == Open()
    other = do(game, Resign(2)).game
    assert round_of(other).step == round_of(game).step


def test_a_tile_cannot_be_laid_on_the_river_without_having_been_drawn() -> None:
    with pytest.raises(ValueError, match="while a choice is pending"):
        advance(game_at(". / 1*{R7} 2{K1} / {O9} / 1", RIVER), (RiverTileLaid(1, parse_tile("R7")),))


# Playing after a draw


def test_a_player_may_play_after_drawing_if_the_ruleset_allows_it() -> None:
    game = do(game_at("[R4 R5 R6] / 1*{B1} 2{K1} / {R7 O9} / 1", GOES_ON), DrawTile(1))
    assert game.events == (TileDrawn(1, parse_tile("R7")),)
    assert round_of(game.game).step == Drawn(parse_tile("R7"))
    assert only_reason(game.game, DrawTile(1)) is Reason.TURN_PHASE_WRONG
    played = do(game.game, play(1, "[R4 R5 R6 R7]")).game
    assert (turn_of(played), round_of(played).step) == (2, Open())


def test_only_other_tiles_than_the_one_drawn_may_be_played() -> None:
    game = do(game_at("[R4 R5 R6] / 1*{B1 R3} 2{K1} / {R7 O9} / 1", OTHER_TILES), DrawTile(1)).game
    assert only_reason(game, play(1, "[R4 R5 R6 R7]")) is Reason.PLAY_AFTER_DRAW
    do(game, play(1, "[R3 R4 R5 R6]"))


def test_a_turn_after_a_draw_is_ended_by_passing() -> None:
    game = do(game_at("[R4 R5 R6] / 1*{B1} 2{K1} / {R7} / 1", GOES_ON), DrawTile(1)).game
    ended = do(game, Pass(1))
    assert kinds(ended) == [TurnEnded, TurnStarted]
    assert (round_of(ended.game).passed, turn_of(ended.game)) == ((), 2)


@pytest.mark.parametrize(("draft", "tiles"), [("[R4 R5 R6]", ""), ("[R4 R5 R6 R7]", "O9 O8 O7"), (None, "")])
def test_time_runs_out_after_a_draw(draft: str | None, tiles: str) -> None:
    rules = replace(GOES_ON, turn_timeout_dirty=TurnTimeoutDirty.REVERT_AND_DRAW_PENALTY)
    game = do(game_at("[R4 R5 R6] / 1*{B1} 2{K1} / {R7 O9 O8 O7} / 1", rules), DrawTile(1)).game
    late = do(game, TimeOut(None if draft is None else parse_melds(draft)), LATE)
    assert late.events[0] == TurnTimedOut(1, parse_tiles(tiles))
    assert (round_of(late.game).passed, round_of(late.game).step) == ((), Open())


# Drafts and the two kinds of time-outs


def timed_out(ruleset: Ruleset, draft: str | None, pool: str = "O9 O8 O7 O6 O5") -> Applied:
    game = game_at(f"[R4 R5 R6] | [B1 K1 O1] / 1*{{R7 B2}} 2{{K1}} / {{{pool}}} / 1", ruleset)
    return do(game, TimeOut(None if draft is None else parse_melds(draft)), LATE)


UNTOUCHED = "[O1 K1 B1] | [R4 R5 R6]"
UNFINISHED = "[R4 R5] | [R6 R7 B2] | [B1 K1 O1]"
FINISHED = "[R4 R5 R6 R7] | [B1 K1 O1]"


@pytest.mark.parametrize(
    ("ruleset", "draft", "tiles"),
    [
        (SABRA, None, "O9"),
        (SABRA, UNTOUCHED, "O9"),
        (SABRA, f"{UNTOUCHED} | []", "O9"),
        (SABRA, UNFINISHED, "O9 O8 O7"),
        (REVERT, FINISHED, "O9 O8 O7"),
        (replace(SABRA, penalty_tiles=1), UNFINISHED, "O9"),
        (replace(SABRA, penalty_tiles=7), UNFINISHED, "O9 O8 O7 O6 O5"),
        (replace(SABRA, turn_timeout_clean=TurnTimeoutClean.DRAW_PENALTY), UNTOUCHED, "O9 O8 O7"),
        (replace(SABRA, turn_timeout_clean=TurnTimeoutClean.PASS), UNTOUCHED, ""),
        (replace(SABRA, turn_timeout_clean=TurnTimeoutClean.PASS), None, ""),
        (replace(SABRA, turn_timeout_clean=TurnTimeoutClean.PASS), UNFINISHED, "O9 O8 O7"),
        (replace(SABRA, turn_timeout_dirty=TurnTimeoutDirty.REVERT_AND_DRAW_ONE), UNFINISHED, "O9"),
        (replace(SABRA, turn_timeout_dirty=TurnTimeoutDirty.REVERT_AND_DRAW_ONE), None, "O9"),
        (REVERT, UNTOUCHED, "O9"),
        (SABRA, FINISHED, None),
        (replace(SABRA, win_call=WinCall.REQUIRED), "[R4 R5 R6 R7] | [B1 K1 O1]", None),
    ],
)
def test_the_cost_of_a_time_out(ruleset: Ruleset, draft: str | None, tiles: str | None) -> None:
    late = timed_out(ruleset, draft)
    if tiles is None:
        assert kinds(late) == [TurnTimedOut, TilesPlayed, TurnStarted]
        return
    assert late.events[0] == TurnTimedOut(1, parse_tiles(tiles))
    assert len(melds_of(round_of(late.game).table)) == 2


def test_a_legal_draft_is_played_when_time_runs_out() -> None:
    late = timed_out(SABRA, FINISHED)
    assert kinds(late) == [TurnTimedOut, TilesPlayed, TurnStarted]
    assert position(late.game) == "[R4 R5 R6 R7] | [B1 K1 O1] / 1*{B2} 2{K1} / {O9 O8 O7 O6 O5} / 2"
    assert round_of(late.game).passed == ()


def test_a_draft_goes_out_only_with_a_call_that_it_cannot_make() -> None:
    game = game_at("[R4 R5 R6] / 1*{R7} 2{K1} / {O9} / 1", replace(SABRA, win_call=WinCall.REQUIRED))
    late = do(game, TimeOut(parse_melds("[R4 R5 R6 R7]")), LATE)
    assert late.events[0] == TurnTimedOut(1, parse_tiles("O9"))


def test_a_clean_time_out_that_draws_nothing_does_not_block_a_round_with_a_pool() -> None:
    passes = replace(SABRA, turn_timeout_clean=TurnTimeoutClean.PASS)
    game = game_at("[R4 R5 R6] / 1*{R7} 2{K1} / {O9} / 1", passes, passed=(2,))
    late = do(game, TimeOut(parse_melds("[R4 R5 R6]")), LATE)
    assert kinds(late) == [TurnTimedOut, TurnStarted]
    assert round_of(late.game).passed == (2,)


# Illegal plays


ILLEGAL = play(1, "[R4 R5 R6] | [R7 B1]")


def test_an_illegal_play_costs_penalty_tiles_and_the_turn() -> None:
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2{K1} / {O9 O8 O7 O6} / 1", PENALISE)
    penalised = do(game, ILLEGAL)
    assert penalised.events[0] == TurnPenalised(1, parse_tiles("O9 O8 O7"))
    assert [violation.reason for violation in penalised.violations] == [Reason.MELD_TOO_SHORT]
    assert position(penalised.game) == "[R4 R5 R6] / 1*{R7 B1 O7 O8 O9} 2{K1} / {O6} / 2"


def test_a_penalty_from_an_empty_pool_counts_as_a_pass() -> None:
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2{K1} / {} / 1", PENALISE, passed=(2,))
    assert kinds(do(game, ILLEGAL)) == [TurnPenalised, RoundEnded, GameEnded]


def shown(seats: str = "2{K1} 3{B9} 4{K9}") -> Game:
    game = game_at(f"[R4 R5 R6] / 1*{{R7 B1}} {seats} / {{O9 O8 O7 O6}} / 1", CLAIMS)
    applied = do(game, ILLEGAL)
    assert applied.events == (IllegalPlayShown(1, ILLEGAL.table, (Reason.MELD_TOO_SHORT,)),)
    assert [violation.reason for violation in applied.violations] == [Reason.MELD_TOO_SHORT]
    return applied.game


def claim(seat: int, agrees: bool = True, revision: int = 11) -> ClaimError:
    return ClaimError(seat, revision, agrees)


def test_an_illegal_play_is_penalised_when_all_others_claim_it() -> None:
    game = do(do(shown(), claim(2)).game, claim(4)).game
    assert turn_of(game) == 1
    last = do(game, claim(3))
    assert last.events[:2] == (ErrorClaimed(3, agrees=True), TurnPenalised(1, parse_tiles("O9 O8 O7")))
    assert position(last.game) == "[R4 R5 R6] / 1*{R7 B1 O7 O8 O9} 2{K1} 3{B9} 4{K9} / {O6} / 2"
    assert round_of(last.game).shown_play is None
    assert only_reason(last.game, claim(3)) is Reason.NOTHING_TO_CLAIM


def test_one_vote_against_ends_a_claim() -> None:
    game = do(do(shown(), claim(2)).game, claim(3, agrees=False)).game
    assert is_a(round_of(game).shown_play, ShownPlay).against == 3
    assert only_reason(game, claim(4)) is Reason.CLAIM_NOT_UNANIMOUS
    again = do(game, ILLEGAL).game
    assert only_reason(again, claim(4)) is Reason.NOTHING_TO_CLAIM
    do(again, claim(4, revision=again.revision))


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (claim(1), Reason.CLAIM_OWN_PLAY),
        (claim(2), Reason.CLAIM_ALREADY_VOTED),
        (claim(3, revision=10), Reason.NOTHING_TO_CLAIM),
    ],
)
def test_a_vote_that_may_not_be_cast(action: ClaimError, reason: Reason) -> None:
    assert only_reason(do(shown(), claim(2)).game, action) is reason


def test_nothing_can_be_claimed_before_an_illegal_play_or_after_its_turn() -> None:
    assert only_reason(game_at(". / 1{R7} 2{K1} / {O9} / 1", CLAIMS), claim(2)) is Reason.NOTHING_TO_CLAIM
    assert only_reason(shown(), claim(2), LATE) is Reason.NOTHING_TO_CLAIM
    for action in (DrawTile(1), play(1, "[R4 R5 R6 R7]")):
        assert only_reason(do(shown(), action).game, claim(2)) is Reason.NOTHING_TO_CLAIM


def test_a_turn_with_an_illegal_play_is_never_clean() -> None:
    for draft in (None, parse_melds("[R4 R5 R6]")):
        assert do(shown(), TimeOut(draft), LATE).events[0] == TurnTimedOut(1, parse_tiles("O9 O8 O7"))


def test_a_claim_becomes_unanimous_by_a_resignation() -> None:
    game = do(do(shown(), claim(2)).game, claim(4)).game
    left = do(game, Resign(3))
    assert kinds(left) == [PlayerResigned, TurnPenalised, TurnStarted]
    assert only_reason(do(shown(), Resign(2)).game, claim(2)) is Reason.PLAYER_RESIGNED
    assert kinds(do(do(game, Resign(4)).game, claim(3)))[:2] == [ErrorClaimed, TurnPenalised]
    assert kinds(do(do(shown(), claim(2, agrees=False)).game, Resign(4))) == [PlayerResigned]


def chosen_and_claimed() -> Game:
    """Returns a game in which two of three have claimed an illegal play, after which its player drew two tiles."""
    ruleset = replace(CLAIMS, turn_draw=TurnDraw.TWO_RIVER)
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2{K1} 3{B9} / {O9 O8 O7 O6 O5 O4} / 1", ruleset)
    return do(do(do(game, ILLEGAL).game, DrawTile(1)).game, claim(2)).game


@pytest.mark.parametrize("last", [claim(3), Resign(3)])
def test_a_penalty_makes_a_pending_choice(last: Action) -> None:
    game = chosen_and_claimed()
    penalised = do(game, last)
    assert kinds(penalised)[1:] == [TurnPenalised, RiverTileLaid, TurnStarted]
    assert position(penalised.game) == "[R4 R5 R6] / 1*{R7 B1 O5 O6 O7 O9} 2{K1} 3{B9} / {O4} / 2"
    assert round_of(penalised.game).river == parse_tiles("O8")
    assert round_of(penalised.game).tiles == round_of(game).tiles


def test_a_penalty_after_the_last_tiles_were_drawn_is_no_pass() -> None:
    ruleset = replace(CLAIMS, turn_draw=TurnDraw.TWO_RIVER)
    shown = do(game_at("[R4 R5 R6] / 1*{R7 B1} 2{K1} / {O9 O8} / 1", ruleset), ILLEGAL).game
    penalised = do(do(shown, DrawTile(1)).game, claim(2))
    assert position(penalised.game) == "[R4 R5 R6] / 1*{R7 B1 O9} 2{K1} / {} / 2"
    assert round_of(penalised.game).passed == ()
    assert kinds(do(penalised.game, Pass(2))) == [TurnPassed, TurnStarted]


def test_no_turn_begins_before_a_choice_is_made() -> None:
    with pytest.raises(ValueError, match="after the River choice"):
        advance(chosen_and_claimed(), (TurnStarted(Turn(2, None)),))


def test_a_play_of_foreign_tiles_is_not_shown() -> None:
    game = game_at("[R4 R5 R6] / 1*{R7 B1} 2{K1} 3{B9} / {O9} / 1", CLAIMS)
    assert refusal(game, play(1, "[R4 R5 R6 R7] | [B1 B2 B3]")).reason is Reason.TILE_NOT_IN_RACK
    without_jokers = replace(game, ruleset=replace(CLAIMS, geometry_jokers=0))
    assert refusal(without_jokers, play(1, "[R4 R5 R6 R7 J]")).reason is Reason.TILE_UNKNOWN


def test_a_claim_is_about_a_play() -> None:
    with pytest.raises(ValueError, match="a claim needs a shown play"):
        advance(game_at(". / 1{R7} 2{K1} / {O9} / 1", CLAIMS), (ErrorClaimed(2, agrees=True),))


@pytest.mark.parametrize("action", [claim(1), RequestRedeal(1, Shuffle((), ()))])
def test_variants_have_no_actions_outside_a_round(action: Action) -> None:
    assert only_reason(lobby("Ada", "Ben"), action) is Reason.GAME_NOT_STARTED
    out = do(game_at("[R4 R5 R6] / 1*{R7} 2{K1} / {O9} / 1"), play(1, "[R4 R5 R6 R7]")).game
    assert only_reason(out, action) is Reason.GAME_OVER


# A new deal


def dealt(hand: str) -> tuple[Game, Shuffle]:
    """Returns a game of two whose first player is dealt a hand, and another shuffle."""
    first = parse_tiles(hand)
    rest = list(tile_set(4, 2, 2))
    for tile in first:
        rest.remove(tile)
    start = (parse_tile("R13"), parse_tile("R1"))
    others = list(tile_set(4, 2, 2))
    for tile in start:
        others.remove(tile)
    shuffle = Shuffle((*start, *others), (*first, *rest))
    again = Shuffle((*start, *others), tuple(reversed(shuffle.deal)))
    return do(lobby("Ada", "Ben", ruleset=REDEAL), StartGame(1, shuffle)).game, again


PAIRS = "R1 R1 B2 B2 K3 K3 O4"


def test_three_pairs_give_a_right_to_a_new_deal() -> None:
    game, again = dealt(PAIRS)
    redealt = do(game, RequestRedeal(1, again))
    assert kinds(redealt) == [RedealDemanded, RoundStarted, TurnStarted]
    assert round_of(redealt.game).number == 1
    assert round_of(redealt.game).rack(1).tiles == tuple(sorted(again.deal[:7]))


def refuse_redeal(game: Game, shuffle: Shuffle, seat: int = 1) -> None:
    assert only_reason(game, RequestRedeal(seat, shuffle)) is Reason.REDEAL_NOT_ALLOWED


def test_the_right_to_a_new_deal_ends_with_the_first_act() -> None:
    game, again = dealt(PAIRS)
    refuse_redeal(do(game, DrawTile(1)).game, again)
    refuse_redeal(replace(game, ruleset=replace(SABRA, deal_hand_size=7)), again)
    claims = TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM
    shows = do(replace(game, ruleset=replace(REDEAL, turn_invalid_submission=claims)), play(1, "[R1 R1 B2]")).game
    refuse_redeal(shows, again)
    refuse_redeal(do(replace(game, ruleset=replace(REDEAL, turn_draw=TurnDraw.TWO_RIVER)), DrawTile(1)).game, again)
    assert only_reason(do(three_of(game), Resign(1)).game, RequestRedeal(1, again)) is Reason.PLAYER_RESIGNED
    refuse_redeal(dealt("R1 R1 B2 B2 K3 K4 O4")[0], again)


def test_the_right_to_a_new_deal_ends_with_an_act_that_draws_nothing_as_the_pool_is_empty() -> None:
    game, again = dealt(PAIRS)
    claims = TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM
    nothing_left = replace(three_of(game), phase=Playing(replace(round_of(game), pool=())))
    for submission in (TurnInvalidSubmission.PENALISE, claims):
        game = replace(nothing_left, ruleset=replace(REDEAL, turn_invalid_submission=submission))
        after = do(game, play(1, "[R1 R1 B2]")).game
        if submission is claims:
            after = do(after, Pass(1)).game
        assert turn_of(after) == 2
        refuse_redeal(after, again)
    refuse_redeal(do(nothing_left, Pass(1)).game, again)


def three_of(game: Game) -> Game:
    """Returns the game with one more player, so that one can resign."""
    third = replace(game.players[0], seat=3, name="Cleo")
    return replace(game, players=(*game.players, third))


# The empty pool


def drawn_out(ruleset: Ruleset) -> Applied:
    return do(game_at(". / 1{R7} 2{K1} 3{B9} / {O9} / 2", ruleset), DrawTile(2))


@pytest.mark.parametrize(("ruleset", "order"), [(LAST_CHANCE, (2, 3, 1)), (DRAWER_LAST, (3, 1, 2))])
def test_each_player_has_one_last_turn_when_the_pool_is_empty(ruleset: Ruleset, order: tuple[int, ...]) -> None:
    applied = drawn_out(ruleset)
    assert applied.events[1] == LastChanceStarted(order)
    game = applied.game
    for place, seat in enumerate(order):
        assert (turn_of(game), round_of(game).last_chance) == (seat, order[place:])
        applied = do(game, Pass(seat))
        game = applied.game
    assert is_a(applied.events[1], RoundEnded).result.end is RoundEnd.BLOCKED


def test_a_last_turn_may_go_out_and_a_resigned_player_has_none() -> None:
    game = do(drawn_out(LAST_CHANCE).game, Resign(3)).game
    assert turn_of(game) == 2
    passed = do(game, Pass(2)).game
    assert turn_of(passed) == 1
    assert kinds(do(passed, Pass(1)))[:2] == [TurnPassed, RoundEnded]
    last = do(drawn_out(DRAWER_LAST).game, Pass(3)).game
    assert kinds(do(last, Resign(2))) == [PlayerResigned]
    assert kinds(do(do(last, Resign(2)).game, Pass(1)))[:2] == [TurnPassed, RoundEnded]


def test_a_penalty_can_empty_the_pool_too() -> None:
    game = game_at(". / 1{R7} 2{K1} 3{B9} / {O9 O8} / 2", LAST_CHANCE)
    late = do(game, TimeOut(parse_melds("[K1]")), LATE)
    assert late.events[:2] == (TurnTimedOut(2, parse_tiles("O9 O8")), LastChanceStarted((2, 3, 1)))


def test_a_round_may_end_with_the_last_tile_drawn() -> None:
    ended = drawn_out(AT_ONCE)
    assert kinds(ended) == [TileDrawn, RoundEnded, GameEnded]
    assert is_a(ended.events[1], RoundEnded).result.end is RoundEnd.BLOCKED
    assert kinds(do(game_at(". / 1{R7} 2{K1} / {O9 O8} / 1", AT_ONCE), DrawTile(1))) == [TileDrawn, TurnStarted]


# Analysis


@dataclass(frozen=True)
class Knows:
    """An analysis that answers with a function."""

    answer: Callable[[AnySituation], Existence]

    def can_play(self, situation: AnySituation) -> Existence:
        return self.answer(situation)


def by_rack(answers: Mapping[str, Existence]) -> Knows:
    """Returns an analysis whose answer depends on the rack."""
    return Knows(lambda situation: answers[format_tiles(situation.rack)])


def always(answer: Existence) -> Knows:
    """Returns an analysis that always gives the same answer."""
    return Knows(lambda _: answer)


YES, NO, UNKNOWN = map(always, Existence)
MUST_PLAY = replace(SABRA, turn_voluntary_draw=TurnVoluntaryDraw.ONLY_IF_NO_PLAY)
MUST_MELD = replace(SABRA, initial_meld_voluntary_delay=False)
MUST_NOT_PASS = replace(SABRA, pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY)
UNTIL_PLAYABLE = replace(SABRA, turn_draw=TurnDraw.UNTIL_PLAYABLE)


@pytest.mark.parametrize(
    ("ruleset", "melded", "refused"), [(MUST_PLAY, "*", True), (MUST_MELD, "", True), (MUST_MELD, "*", False)]
)
def test_a_player_with_a_play_may_not_draw(ruleset: Ruleset, melded: str, refused: bool) -> None:
    game = game_at(f". / 1{melded}{{R7}} 2{{K1}} / {{O9}} / 1", ruleset)
    if refused:
        assert only_reason(game, DrawTile(1), analysis=YES) is Reason.DRAW_NOT_ALLOWED_PLAY_EXISTS
    else:
        do(game, DrawTile(1))
    do(game, DrawTile(1), analysis=NO)
    do(game, DrawTile(1), analysis=UNKNOWN)


def test_a_player_with_a_play_may_not_pass() -> None:
    game = game_at(". / 1*{R7} 2{K1} / {} / 1", MUST_NOT_PASS, river="B5")
    assert only_reason(game, Pass(1), analysis=YES) is Reason.PASS_NOT_ALLOWED_PLAY_EXISTS
    do(game, Pass(1), analysis=NO)
    do(game, Pass(1), analysis=UNKNOWN)
    as_it_is = Situation((), parse_tiles("R7"), has_melded=True, ruleset=MUST_NOT_PASS, river=parse_tiles("B5"))
    knows = Knows(lambda situation: Existence.YES if situation == as_it_is else Existence.NO)
    only_reason(game, Pass(1), analysis=knows)


def test_tiles_are_drawn_until_one_can_be_played() -> None:
    game = game_at(". / 1*{R7} 2{K1} / {O9 O8 R3 O7} / 1", UNTIL_PLAYABLE)
    for found in (Existence.YES, Existence.UNKNOWN):
        knows = by_rack({"R7 O9": Existence.NO, "R7 O8 O9": Existence.NO, "R3 R7 O8 O9": found})
        assert do(game, DrawTile(1), analysis=knows).events[0] == TilesDrawn(1, parse_tiles("O9 O8 R3"))
    assert do(game, DrawTile(1), analysis=NO).events[0] == TilesDrawn(1, parse_tiles("O9 O8 R3 O7"))
    assert do(game_at(". / 1*{O7} 2{K1} / {O9 R3 O8 R5} / 1", UNTIL_PLAYABLE), DrawTile(1)).events[0] == TilesDrawn(
        1, parse_tiles("O9 R3 O8")
    )


def test_a_player_may_make_the_play_that_ends_a_draw_until_playable() -> None:
    ruleset = replace(UNTIL_PLAYABLE, turn_play_after_draw=TurnPlayAfterDraw.ALLOWED)
    drawn = do(game_at("[R4 R5 R6] / 1*{B9} 2*{K1} / {K2 R7 K6} / 1", ruleset), DrawTile(1))
    assert drawn.events == (TilesDrawn(1, parse_tiles("K2 R7")),)
    assert round_of(drawn.game).step == Drawn(parse_tile("R7"))
    assert only_reason(drawn.game, DrawTile(1)) is Reason.TURN_PHASE_WRONG
    assert kinds(do(drawn.game, play(1, "[R4 R5 R6 R7]"))) == [TilesPlayed, TurnStarted]
    assert kinds(do(drawn.game, Pass(1))) == [TurnEnded, TurnStarted]


def test_tiles_are_drawn_until_there_is_a_play_without_the_last_of_them() -> None:
    ruleset = replace(UNTIL_PLAYABLE, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES)
    game = game_at("[R4 R5 R6] / 1*{B9} 2*{K1} / {K2 R7 K6 O9} / 1", ruleset)
    drawn = do(game, DrawTile(1))
    assert drawn.events == (TilesDrawn(1, parse_tiles("K2 R7 K6")),)
    assert round_of(drawn.game).step == Drawn(parse_tile("K6"))
    do(drawn.game, play(1, "[R4 R5 R6 R7]"))
    for found in (Existence.YES, Existence.UNKNOWN):
        knows = by_rack({"B9": Existence.NO, "B9 K2": found})
        assert do(game, DrawTile(1), analysis=knows).events == (TilesDrawn(1, parse_tiles("K2 R7")),)
    last = do(game_at("[R4 R5 R6] / 1*{B9} 2*{K1} / {R7} / 1", ruleset), DrawTile(1)).game
    assert only_reason(last, play(1, "[R4 R5 R6 R7]")) is Reason.PLAY_AFTER_DRAW
    do(last, Pass(1))


@pytest.mark.parametrize(
    ("test", "passed", "analysis", "ends"),
    [
        (PoolEmptyStuckTest.CONSECUTIVE_PASSES, (2,), YES, True),
        (PoolEmptyStuckTest.CONSECUTIVE_PASSES, (), NO, False),
        (PoolEmptyStuckTest.EXACT, (2,), YES, False),
        (PoolEmptyStuckTest.EXACT, (2,), UNKNOWN, True),
        (PoolEmptyStuckTest.EXACT, (), UNKNOWN, False),
        (PoolEmptyStuckTest.EXACT, (), NO, True),
        (PoolEmptyStuckTest.BOTH, (2,), YES, True),
        (PoolEmptyStuckTest.BOTH, (), NO, True),
        (PoolEmptyStuckTest.BOTH, (), YES, False),
        (PoolEmptyStuckTest.BOTH, (2,), UNKNOWN, True),
        (PoolEmptyStuckTest.BOTH, (), UNKNOWN, False),
    ],
)
def test_when_a_round_is_stuck(test: PoolEmptyStuckTest, passed: tuple[int, ...], analysis: Knows, ends: bool) -> None:
    game = game_at(". / 1*{R7} 2{K1} / {} / 1", replace(SABRA, pool_empty_stuck_test=test), passed=passed)
    assert (RoundEnded in kinds(do(game, Pass(1), analysis=analysis))) == ends


@pytest.mark.parametrize("test", [PoolEmptyStuckTest.EXACT, PoolEmptyStuckTest.BOTH])
@pytest.mark.parametrize(
    ("ada", "ben", "passed", "ends"),
    [
        (Existence.NO, Existence.YES, (), False),
        (Existence.UNKNOWN, Existence.YES, (), False),
        (Existence.NO, Existence.UNKNOWN, (), False),
        (Existence.UNKNOWN, Existence.NO, (), False),
        (Existence.UNKNOWN, Existence.NO, (2,), True),
        (Existence.NO, Existence.NO, (), True),
    ],
)
def test_a_stuck_round_depends_on_analysis_and_passes(
    test: PoolEmptyStuckTest, ada: Existence, ben: Existence, passed: tuple[int, ...], ends: bool
) -> None:
    game = game_at(". / 1*{R7} 2{K1} / {} / 1", replace(SABRA, pool_empty_stuck_test=test), passed=passed)
    knows = by_rack({"R7": ada, "K1": ben})
    assert (RoundEnded in kinds(do(game, Pass(1), analysis=knows))) == ends


@pytest.mark.parametrize(
    ("test", "pool", "action", "is_asked"),
    [
        (PoolEmptyStuckTest.EXACT, "", Pass(1), True),
        (PoolEmptyStuckTest.BOTH, "", Pass(1), True),
        (PoolEmptyStuckTest.EXACT, "O9", DrawTile(1), True),
        (PoolEmptyStuckTest.EXACT, "O9 O8", DrawTile(1), False),
        (PoolEmptyStuckTest.CONSECUTIVE_PASSES, "", Pass(1), False),
    ],
)
def test_it_is_known_whether_other_racks_may_have_been_searched(
    test: PoolEmptyStuckTest, pool: str, action: Action, is_asked: bool
) -> None:
    asked = []

    def answer(situation: AnySituation) -> Existence:
        asked.append(situation.rack)
        return Existence.NO

    game = game_at(f". / 1*{{R7}} 2{{K1}} / {{{pool}}} / 1", replace(SABRA, pool_empty_stuck_test=test))
    applied = do(game, action, analysis=Knows(answer))
    assert (may_have_searched_all_racks(applied), parse_tiles("K1") in asked) == (is_asked, is_asked)


def test_in_the_lobby_no_rack_is_searched() -> None:
    assert not may_have_searched_all_racks(
        do(create(replace(SABRA, pool_empty_stuck_test=PoolEmptyStuckTest.EXACT)).game, Join("Ada"))
    )


def test_a_resigned_player_is_not_analyzed() -> None:
    stuck = replace(SABRA, pool_empty_stuck_test=PoolEmptyStuckTest.EXACT)
    game = game_at(". / 1*{R7} 2*{K1 K2 K3} 3*{O9} / {} / 1", stuck)
    assert RoundEnded not in kinds(do(game, Pass(1)))
    assert RoundEnded in kinds(do(do(game, Resign(2)).game, Pass(1)))


def test_the_rules_use_the_solver() -> None:
    rearranged = "[R4 R5 R6] | [R4 R5 R6] | [B4 B5 B6] | [K4 K5 K6] / 1*{%s} 2*{K1} / {} / 1"
    assert only_reason(game_at(rearranged % "O4 R1", MUST_NOT_PASS), Pass(1)) is Reason.PASS_NOT_ALLOWED_PLAY_EXISTS
    do(game_at(rearranged % "O7 R1", MUST_NOT_PASS), Pass(1))


# Declined initial melds

OLYMPIAD = replace(SABRA, score_never_melded=ScoreNeverMelded.FLAT_100_OR_200)
COULD, COULD_NOT = "R10 R11 R12", "R1 R2 R3"


def with_one_drawn(ruleset: Ruleset, rack: str, drawn: str) -> Applied:
    """Returns a turn of seat 1 that continues after a draw."""
    return do(game_at(f"[R4 R5 R6] / 1{{{rack}}} 2*{{R7 R8}} / {{{drawn} O8}} / 1", ruleset), DrawTile(1))


@pytest.mark.parametrize(
    ("rules", "pool", "action", "kind"),
    [
        ({}, "O9 O8", DrawTile(1), TileDrawn),
        ({"turn_draw": TurnDraw.TWO_RIVER}, "O9 O8 O7", DrawTile(1), TilesOffered),
        ({"turn_draw": TurnDraw.UNTIL_PLAYABLE}, "O9 O8", DrawTile(1), TilesDrawn),
        ({}, "", Pass(1), TurnPassed),
        ({"turn_play_after_draw": TurnPlayAfterDraw.ALLOWED}, "O9 O8", DrawTile(1), TileDrawn),
    ],
)
def test_a_player_with_an_initial_meld_who_plays_nothing_has_declined(
    rules: dict[str, Any], pool: str, action: Action, kind: type[Event]
) -> None:
    for rack, melded, ruleset, declines in (
        (COULD, "", OLYMPIAD, True),
        (COULD_NOT, "", OLYMPIAD, False),
        (COULD, "*", OLYMPIAD, False),
        (COULD, "", SABRA, False),
    ):
        game = game_at(f". / 1{melded}{{{rack}}} 2*{{K1 K5}} / {{{pool}}} / 1", replace(ruleset, **rules))
        applied = do(game, action)
        [done] = [event for event in applied.events if isinstance(event, kind)]
        assert getattr(done, "declined") is declines  # noqa: B009 - a field of some events
        assert round_of(applied.game).declined == ((1,) if declines else ())


def test_a_player_who_must_play_declines_nothing() -> None:
    rules = replace(OLYMPIAD, initial_meld_voluntary_delay=False, pool_empty_pass=PoolEmptyPass.ONLY_IF_NO_PLAY)
    for pool, action in (("O9 O8", DrawTile(1)), ("", Pass(1))):
        game = game_at(f". / 1{{{COULD}}} 2*{{K1 K5}} / {{{pool}}} / 1", rules)
        refusal(game, action)
        for analysis in (NO, UNKNOWN):
            assert round_of(do(game, action, analysis=analysis).game).declined == ()


def test_an_unknown_answer_is_not_declined() -> None:
    game = game_at(f". / 1{{{COULD}}} 2*{{K1 K5}} / {{O9 O8}} / 1", OLYMPIAD)
    assert round_of(do(game, DrawTile(1), analysis=UNKNOWN).game).declined == ()


def test_a_time_out_declines_nothing() -> None:
    game = game_at(f". / 1{{{COULD}}} 2*{{K1 K5}} / {{O9 O8 O7 O6}} / 1", OLYMPIAD)
    assert round_of(do(game, TimeOut(), LATE).game).declined == ()


@pytest.mark.parametrize(
    ("after", "declines"), [(TurnPlayAfterDraw.ALLOWED, True), (TurnPlayAfterDraw.OTHER_TILES, False)]
)
def test_a_turn_end_declines_the_initial_meld_with_the_drawn_tile(after: TurnPlayAfterDraw, declines: bool) -> None:
    drawn = with_one_drawn(replace(OLYMPIAD, turn_play_after_draw=after), "R10 R11", "R12")
    assert drawn.events == (TileDrawn(1, parse_tile("R12")),)
    ended = do(drawn.game, Pass(1))
    assert ended.events[0] == TurnEnded(1, declines)
    assert round_of(ended.game).declined == ((1,) if declines else ())


@pytest.mark.parametrize(("pool", "drawn", "declines"), [("O9 R12 B7 O8", "O9 R12 B7", True), ("R12", "R12", False)])
def test_a_turn_end_declines_the_initial_meld_without_the_last_drawn_tile(
    pool: str, drawn: str, declines: bool
) -> None:
    ruleset = replace(OLYMPIAD, turn_draw=TurnDraw.UNTIL_PLAYABLE, turn_play_after_draw=TurnPlayAfterDraw.OTHER_TILES)
    after = do(game_at(f"[R4 R5 R6] / 1{{R10 R11}} 2*{{K7 K8}} / {{{pool}}} / 1", ruleset), DrawTile(1))
    assert after.events == (TilesDrawn(1, parse_tiles(drawn)),)
    assert do(after.game, Pass(1)).events[0] == TurnEnded(1, declines)


def test_declining_once_costs_points_only_at_the_end_of_the_round() -> None:
    two = replace(OLYMPIAD, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
    game = game_at(f"[R4 R5 R6] / 1{{{COULD}}} 2*{{R7}} 3{{{COULD_NOT}}} / {{O9 O8}} / 3", two)
    game = do(do(game, DrawTile(3)).game, DrawTile(1)).game
    assert round_of(game).declined == (1,)
    out = do(game, play(2, "[R4 R5 R6 R7]"))
    assert [seat.points for seat in is_a(out.events[1], RoundEnded).result.seats] == [-200, 300, -100]
    tiles = tile_set(4, 2, 2)
    assert round_of(do(out.game, StartNextRound(1, Shuffle(tiles, tiles))).game).declined == ()


def test_a_player_who_melds_later_pays_normally() -> None:
    game = game_at(f"[R4 R5 R6] / 1{{{COULD} O1}} 2*{{R7 K3}} / {{O9 O8 O7}} / 1", OLYMPIAD)
    game = do(do(game, DrawTile(1)).game, DrawTile(2)).game
    game = do(game, play(1, "[R4 R5 R6] | [R10 R11 R12]")).game
    out = do(game, Resign(1))
    assert [seat.points for seat in is_a(out.events[1], RoundEnded).result.seats] == [-10, 10]


# The end of a round


def test_a_player_who_never_melded_pays_by_the_option() -> None:
    flat = replace(SABRA, score_never_melded=ScoreNeverMelded.FLAT_100)
    out = do(game_at("[R4 R5 R6] / 1*{R7} 2{K1} 3*{B9} / {O9} / 1", flat), play(1, "[R4 R5 R6 R7]"))
    assert [seat.points for seat in is_a(out.events[1], RoundEnded).result.seats] == [109, -100, -9]


def test_a_contract_pays_its_winner() -> None:
    contract = replace(SABRA, contract=Contract.SINGLE_COLOR, contract_points=50)
    out = do(game_at("[R4 R5 R6] / 1*{R7} 2*{K1} / {O9} / 1", contract), play(1, "[R4 R5 R6 R7]"))
    assert [seat.points for seat in is_a(out.events[1], RoundEnded).result.seats] == [51, -1]


def test_partners_win_together() -> None:
    pairs = replace(SABRA, teams=Teams.PAIRS, players_min=4)
    out = do(game_at("[R4 R5 R6] / 1*{R7} 2{K1} 3{B2} 4{K9} / {O9} / 1", pairs), play(1, "[R4 R5 R6 R7]"))
    assert is_a(out.game.phase, Finished).winners == (1, 3)


def test_turns_follow_the_order_of_the_start_draw() -> None:
    ordered = replace(SABRA, start_draw_determines=StartDrawDetermines.FULL_ORDER)
    rest = list(tile_set(4, 2, 2))
    start = parse_tiles("R5 R1 R9")
    for tile in start:
        rest.remove(tile)
    shuffle = Shuffle((*start, *rest), (*start, *rest))
    game = do(lobby("Ada", "Ben", "Cleo", ruleset=ordered), StartGame(1, shuffle)).game
    turns = []
    for _ in range(4):
        turns.append(turn_of(game))
        game = do(game, DrawTile(turns[-1])).game
    assert turns == [3, 1, 2, 3]


def test_a_side_that_has_resigned_loses_round_and_game() -> None:
    pairs = replace(SABRA, teams=Teams.PAIRS, players_min=4)
    game = do(game_at("[R4 R5 R6] / 1*{R7} 2{K1} 3{B2} 4{K9} / {O9} / 1", pairs), Resign(2)).game
    left = do(game, Resign(4))
    assert kinds(left) == [PlayerResigned, RoundEnded, GameEnded]
    assert is_a(left.game.phase, Finished).winners == (1, 3)
    assert kinds(do(game, Resign(1))) == [PlayerResigned, TurnStarted]
    between = replace(game, phase=RoundOver(round_of(game)))
    assert kinds(do(between, Resign(4))) == [PlayerResigned, GameEnded]
