"""Turns, rounds and games of 101 Okey. What may be laid is in test_laying.py."""

from dataclasses import replace

import pytest

from engine.actions import Action, Resign, StartNextRound, TimeOut
from engine.discard.actions import (
    DiscardTile,
    FinishHand,
    LayTiles,
    ReturnDiscard,
    ShowIndicator,
    TakeDiscard,
    TakeFromPool,
)
from engine.discard.events import (
    DiscardForced,
    DiscardReturned,
    PenaltyScored,
    PoolTileTaken,
    RackFinished,
    TileDiscarded,
    TilesLaid,
)
from engine.discard.game import round_of
from engine.discard.laying import PenaltyCause
from engine.discard.notation import parse_hand
from engine.discard.presets import OKEY_101, PRESETS
from engine.discard.round import DiscardRound, HasLaid, ToDiscard, ToTake
from engine.discard.ruleset import OKEY, Preset, Ruleset
from engine.discard.table import Opening, Table
from engine.events import PlayerResigned, RoundEnded, TurnStarted, TurnTimedOut
from engine.game import Finished, Game, RoundEnd, RoundOver
from engine.notation import parse_tile, parse_tiles
from engine.room_settings import RacksShown, RoomSettings
from engine.tiles import in_order
from engine.turns import outcome
from engine.violations import Reason
from support.okey_games import game_at, shuffle, started
from support.positions import NOW, do, is_a, only_reason, refusal

PARTNERS = PRESETS[Preset.OKEY_101_PARTNERS]
LOOSE = "R2 R7 B1 B5 K9 O11 O13"
"""Tiles of a rack without a meld. The indicator is R4 everywhere, the okey R5."""
TABLE = "[B9 R5 B11] | [K4 K5 K6]"
FIVE = "[R1 R1] | [B2 B2] | [K3 K3] | [O4 O4] | [B6 B6]"
PAIRS = FIVE.replace("[", "").replace("]", "").replace("|", "")
TAKEN = ToDiscard(parse_tile("O1"))
SEEN = ToDiscard(parse_tile("K7"), is_seen=True)


def four(
    rack: str,
    *,
    others: str = LOOSE,
    table: str = TABLE,
    openings: str = "2:105",
    opened: str = "2",
    piles: str = "1{} 2{} 3{K7} 4{}",
    pool: str = "{O9 O10}",
) -> str:
    """Returns a position of four players in which seat 2, which follows seat 3, is to move."""
    racks = " ".join(f"{s}{'*' * (str(s) in opened)}{{{rack if s == 2 else others}}}" for s in (1, 2, 3, 4))
    return f"R4 / {piles} / {racks} / {pool} / 2 / {table} / {openings}"


def at(position: str, step: ToTake | ToDiscard | HasLaid = TAKEN, ruleset: Ruleset = OKEY_101, **more: object) -> Game:
    return game_at(position, ruleset, discarded=(1, 2, 3, 4), step=step, **more)


def lay(table: str) -> LayTiles:
    return LayTiles(2, parse_hand(table))


def discard(tile: str) -> DiscardTile:
    return DiscardTile(2, parse_tile(tile))


def ended(game: Game, action: Action, now_ms: int = NOW) -> tuple[RoundEnd, dict[int, int], Game]:
    """Returns the end and the points of a round that an action ends, and the game after it."""
    done = do(game, action, now_ms)
    result = next(event.result for event in done.events if isinstance(event, RoundEnded))
    return result.end, {seat.seat: seat.points for seat in result.seats}, done.game


# The course of a turn


def test_each_player_is_dealt_21_tiles_and_the_starter_discards_at_once() -> None:
    game = started(1, OKEY_101)
    round_ = round_of(game)
    first = round_.order[0]
    assert [len(rack.tiles) for rack in round_.racks] == [21 + (seat == first) for seat in (1, 2, 3, 4)]
    assert (len(round_.pool), round_.table) == (20, Table())
    assert [player.total_points for player in game.players] == [0, 0, 0, 0]
    for action in (TakeFromPool(first), LayTiles(first, ()), ReturnDiscard(first)):
        assert only_reason(game, action) is Reason.TURN_PHASE_WRONG
    done = do(game, DiscardTile(first, round_.rack(first).tiles[0]))
    assert is_a(done.events[-1], TurnStarted).turn.seat == (first - 1 or 4)
    assert round_of(done.game).step == ToTake()


def test_a_player_takes_lays_lays_again_and_discards() -> None:
    game = do(at(four("B10 K7 O1 O3"), ToTake()), TakeFromPool(2)).game
    first = do(game, lay("[B9 B10 B11] | [K4 K5 K6]"))
    assert first.events == (TilesLaid(2, parse_tiles("B10"), parse_hand("[B9 B10 B11] | [K4 K5 K6]"), 1, 1, None),)
    told = outcome(first)
    assert (told.tiles_played, told.points, told.tiles_drawn) == (parse_tiles("B10"), 0, ())
    round_ = round_of(first.game)
    assert round_.rack(2).tiles == in_order(parse_tiles("K7 O1 O3 O9 R5"))
    assert round_.step == HasLaid(1, is_opening=False)
    assert only_reason(first.game, TakeFromPool(2)) is Reason.TURN_PHASE_WRONG
    assert only_reason(first.game, ReturnDiscard(2)) is Reason.TURN_PHASE_WRONG
    second = do(first.game, lay("[B9 B10 B11] | [K4 K5 K6 K7 R5]")).game
    assert round_of(second).step == HasLaid(3, is_opening=False)
    third = do(second, discard("O9"))
    assert third.events[0] == TileDiscarded(2, parse_tile("O9"))
    assert round_of(third.game).pile(2).tiles == parse_tiles("O9")
    assert round_of(third.game).tiles == round_of(game).tiles


def test_an_opening_is_on_the_table_and_on_the_rack_of_its_player() -> None:
    game = at(four(f"{PAIRS} K7 O1", openings=".", opened=""))
    done = do(game, lay(f"{TABLE} | {FIVE}"))
    laid = is_a(done.events[0], TilesLaid)
    assert (laid.opening, laid.more) == (Opening(2, is_pairs=True, amount=5), 0)
    assert outcome(done).points == 0
    round_ = round_of(done.game)
    assert round_.rack(2).has_melded
    assert round_.table == Table(parse_hand(f"{TABLE} | {FIVE}"), (Opening(2, is_pairs=True, amount=5),))
    assert round_.step == HasLaid(0, is_opening=True)
    melds = "[R10 B10 K10] | [R11 B11 K11] | [R12 B12 K12] | [R2 B2 K2]"
    rack = melds.replace("[", "").replace("]", "").replace("|", "")
    with_melds = do(at(four(f"{rack} O1", openings=".", opened="", table=".")), lay(melds))
    assert outcome(with_melds).points == 105
    again = do(with_melds.game, discard("O1"))
    assert is_a(again.events[0], RackFinished).is_at_once


@pytest.mark.parametrize(
    ("action", "step", "reason"),
    [
        (TakeFromPool(2), TAKEN, Reason.TURN_PHASE_WRONG),
        (lay(TABLE), ToTake(), Reason.TURN_PHASE_WRONG),
        (ReturnDiscard(2), ToTake(), Reason.TURN_PHASE_WRONG),
        (ReturnDiscard(2), TAKEN, Reason.TURN_PHASE_WRONG),
        (ReturnDiscard(1), SEEN, Reason.NOT_YOUR_TURN),
        (FinishHand(2, parse_tile("R2")), TAKEN, Reason.ACTION_NOT_IN_GAME),
        (ShowIndicator(2), TAKEN, Reason.INDICATOR_NOT_SHOWABLE),
        (discard("R13"), TAKEN, Reason.TILE_NOT_IN_RACK),
        (lay(TABLE), TAKEN, Reason.NO_RACK_TILE_PLAYED),
    ],
)
def test_actions_out_of_place_are_refused(action: Action, step: ToTake | ToDiscard, reason: Reason) -> None:
    assert only_reason(at(four(f"{LOOSE} K7"), step), action) is reason


def test_okey_has_no_table() -> None:
    game = game_at("R4 / 1{} 2{} / 1{R1} 2{R2 R3 R6 R7 R8 R9 R10 B1 B2 B3 B4 B5 B6 B7 B8} / {O9} / 2", OKEY)
    for action in (lay("."), ReturnDiscard(2)):
        assert only_reason(game, action) is Reason.ACTION_NOT_IN_GAME


# A discard that was taken


def test_o12_a_player_who_takes_the_discard_must_open_with_it() -> None:
    game = do(at(four(LOOSE, openings=".", opened=""), ToTake()), TakeDiscard(2)).game
    (violation,) = refusal(game, discard("R2")).violations
    assert (violation.reason, violation.tiles) == (Reason.TAKEN_TILE_NOT_USED, parse_tiles("K7"))
    assert only_reason(game, discard("K7")) is Reason.TAKEN_TILE_NOT_USED


def test_a_player_who_has_opened_must_lay_it() -> None:
    game = do(at(four(f"{LOOSE} B12"), ToTake()), TakeDiscard(2)).game
    assert only_reason(game, lay("[B9 R5 B11 B12] | [K4 K5 K6]")) is Reason.TAKEN_TILE_NOT_USED
    laid = do(game, lay("[B9 R5 B11] | [K4 K5 K6 K7]")).game
    assert do(laid, discard("R2")).events[0] == TileDiscarded(2, parse_tile("R2"))


@pytest.mark.parametrize("cost", [0, 101])
def test_a_taken_discard_is_put_back_for_a_tile_of_the_pool(cost: int) -> None:
    rules = replace(OKEY_101, score_return_penalty=cost)
    game = do(at(four(LOOSE), ToTake(), rules), TakeDiscard(2)).game
    done = do(game, ReturnDiscard(2))
    penalty = (PenaltyScored(2, 101, PenaltyCause.DISCARD_RETURNED),) if cost else ()
    tile = parse_tile("O9")
    assert done.events == (DiscardReturned(2, parse_tile("K7"), 3), *penalty, PoolTileTaken(2, tile))
    round_ = round_of(done.game)
    assert (round_.pile(3).tiles, round_.pool) == (parse_tiles("K7"), parse_tiles("O10"))
    assert (round_.step, round_.penalties) == (ToDiscard(tile), penalty)
    assert only_reason(done.game, TakeDiscard(2)) is Reason.TURN_PHASE_WRONG


# Penalties


@pytest.mark.parametrize(
    ("tile", "cause"),
    [
        ("K7", PenaltyCause.DISCARD_FITS_TABLE),
        ("B10", PenaltyCause.DISCARD_FITS_TABLE),
        ("R5", PenaltyCause.OKEY_DISCARDED),
    ],
)
@pytest.mark.parametrize("opened", ["", "2"])
def test_o16_a_discard_that_could_be_laid_off_costs_101(tile: str, cause: PenaltyCause, opened: str) -> None:
    openings = "2:105" if opened else "."
    game = at(four("K7 B10 R5 O1", opened=opened, openings=openings))
    done = do(game, discard(tile))
    assert done.events[:2] == (TileDiscarded(2, parse_tile(tile)), PenaltyScored(2, 101, cause))
    assert is_a(done.events[2], TurnStarted).turn.seat == 1
    assert round_of(done.game).penalties == (PenaltyScored(2, 101, cause),)


def test_penalties_count_at_the_end_of_the_round() -> None:
    paid = (PenaltyScored(2, 101, PenaltyCause.OKEY_DISCARDED), PenaltyScored(1, 101, PenaltyCause.OKEY_DISCARDED))
    game = at(four("O1"), penalties=paid)
    assert ended(game, discard("O1"))[:2] == (RoundEnd.WENT_OUT, {1: 303, 2: 0, 3: 202, 4: 202})


# Points


def position(racks: dict[int, str], openings: str, pool: str = "{O9}", table: str = "[K4 K5 K6]") -> str:
    opened = {word[0] for word in openings.split()}
    text = " ".join(f"{seat}{'*' * (str(seat) in opened)}{{{rack}}}" for seat, rack in racks.items())
    return f"R4 / 1{{}} 2{{}} 3{{}} 4{{}} / {text} / {pool} / 2 / {table} / {openings}"


RACKS = {1: "K13 B11 O10", 2: "O1", 3: "R1 B1", 4: "R6 B6"}
"""Seat 1 opened with melds and holds 34, seat 3 has not opened, seat 4 opened with pairs and holds 12."""


@pytest.mark.parametrize(
    ("name", "racks", "openings", "step", "last", "points"),
    [
        ("O6", RACKS, "1:105 2:101 4:5p", TAKEN, "O1", {2: -101, 1: 34, 3: 202, 4: 24}),
        ("O7", RACKS | {2: "R5"}, "1:105 2:101 4:5p", TAKEN, "R5", {2: -202, 1: 68, 3: 404, 4: 48}),
        ("pairs", RACKS, "1:105 2:5p 4:5p", TAKEN, "O1", {2: -202, 1: 68, 3: 404, 4: 48}),
        ("pairs and an okey", RACKS | {2: "R5"}, "1:105 2:5p 4:5p", TAKEN, "R5", {2: -404, 1: 136, 3: 808, 4: 96}),
        ("O9", RACKS, "2:101", HasLaid(0, is_opening=True), "O1", {2: -202, 1: 404, 3: 404, 4: 404}),
        (
            "all three",
            RACKS | {2: "R5"},
            "2:5p",
            HasLaid(0, is_opening=True),
            "R5",
            {2: -808, 1: 1616, 3: 1616, 4: 1616},
        ),
        ("not the first", RACKS, "1:105 2:101", HasLaid(0, is_opening=True), "O1", {2: -101, 1: 34, 3: 202, 4: 202}),
        ("not in this turn", RACKS, "2:101", HasLaid(3, is_opening=False), "O1", {2: -101, 1: 202, 3: 202, 4: 202}),
        (
            "okeys left, and false jokers",
            {1: "R5 K13", 2: "O1", 3: "R5 R1", 4: "F F"},
            "1:105 2:5p 4:5p",
            TAKEN,
            "O1",
            {2: -202, 1: 127, 3: 505, 4: 40},
        ),
    ],
)
def test_what_a_finish_is_worth(  # noqa: PLR0917 - a row
    name: str, racks: dict[int, str], openings: str, step: ToDiscard | HasLaid, last: str, points: dict[int, int]
) -> None:
    game = at(position(racks, openings), step)
    end, found, after = ended(game, discard(last))
    assert (end, found) == (RoundEnd.WENT_OUT, dict(sorted(points.items()))), name
    assert after.results[0].winners == (2,)
    assert is_a(after.phase, RoundOver).round.tiles == round_of(game).tiles
    assert {player.seat: player.total_points for player in after.players} == found


def test_o10_after_the_last_tile_of_the_pool_all_pay_for_their_racks() -> None:
    racks = {1: "K13 B11 O10", 2: "O13 R7 O1", 3: "R1 B1", 4: "R6 B6"}
    game = at(position(racks, "1:105 2:101 4:5p", pool="."))
    end, points, after = ended(game, discard("O1"))
    assert (end, points) == (RoundEnd.BLOCKED, {1: 34, 2: 20, 3: 202, 4: 24})
    assert after.results[0].winners == ()
    assert [seat.rack_value for seat in after.results[0].seats] == [34, 20, 2, 12]


def test_the_partner_of_a_finisher_pays_nothing() -> None:
    game = at(position(RACKS, "1:105 2:101 4:5p"), TAKEN, PARTNERS)
    _, points, after = ended(game, discard("O1"))
    assert points == {1: 34, 2: -101, 3: 202, 4: 0}
    assert after.results[0].winners == (2, 4)


def test_the_fewest_points_win_after_the_last_round_and_of_partners_those_of_both() -> None:
    for rules, winners in ((replace(OKEY_101, match_rounds=1), (2,)), (replace(PARTNERS, match_rounds=1), (2, 4))):
        game = at(position(RACKS, "1:105 2:101 4:5p"), TAKEN, rules)
        assert is_a(ended(game, discard("O1"))[2].phase, Finished).winners == winners
    even = at(
        position({1: "K2", 2: "O1 K2", 3: "B2", 4: "R2"}, "1:105 2:101 3:101 4:101", "."),
        TAKEN,
        replace(OKEY_101, match_rounds=1),
    )
    assert is_a(ended(even, discard("O1"))[2].phase, Finished).winners == (1, 2, 3, 4)


def test_a_round_that_resignations_end_has_only_its_penalties() -> None:
    paid = (PenaltyScored(2, 101, PenaltyCause.OKEY_DISCARDED),)
    game = do(do(at(four("O1 O3"), penalties=paid), Resign(3)).game, Resign(4)).game
    end, points, after = ended(game, Resign(1))
    assert (end, points) == (RoundEnd.RESIGNED, {1: 0, 2: 101, 3: 0, 4: 0})
    assert is_a(after.phase, Finished).winners == (2,)


# Void rounds


def test_a_round_in_which_all_open_with_pairs_is_void_and_dealt_again() -> None:
    rules = replace(OKEY_101, match_rounds=1)
    paid = (PenaltyScored(1, 101, PenaltyCause.OKEY_DISCARDED),)
    game = at(four(f"{PAIRS} O1", opened="134", openings="1:5p 3:5p 4:6p"), TAKEN, rules, penalties=paid)
    end, points, after = ended(game, lay(f"{TABLE} | {FIVE}"))
    assert (end, points) == (RoundEnd.VOID, {1: 0, 2: 0, 3: 0, 4: 0})
    assert isinstance(after.phase, RoundOver)
    again = do(after, StartNextRound(1, shuffle(1))).game
    assert (round_of(again).number, round_of(again).order[0]) == (2, round_of(game).order[0])
    assert round_of(again).table == Table()


def test_players_who_have_resigned_need_no_pairs_for_a_void_round() -> None:
    game = at(four(f"{PAIRS} O1", opened="34", openings="3:5p 4:6p"))
    assert (
        is_a(do(do(game, Resign(1)).game, lay(f"{TABLE} | {FIVE}")).events[1], RoundEnded).result.end is RoundEnd.VOID
    )
    others = at(four(f"{PAIRS} O1", opened="134", openings="1:105 3:5p 4:6p"))
    assert isinstance(do(others, lay(f"{TABLE} | {FIVE}")).events[-1], TilesLaid)
    left = at(four(f"{LOOSE} O1", opened="234", openings="2:5p 3:5p 4:6p"))
    assert do(left, Resign(1)).events == (PlayerResigned(1),)


# Time-outs


@pytest.mark.parametrize(
    ("rack", "step", "events"),
    [
        (LOOSE, ToTake(), (TurnTimedOut(2, parse_tiles("O9")), DiscardForced(2, parse_tile("O9")))),
        (f"{LOOSE} O1", TAKEN, (TurnTimedOut(2, ()), DiscardForced(2, parse_tile("O1")))),
        (
            f"{LOOSE} K7",
            SEEN,
            (
                TurnTimedOut(2, parse_tiles("O9")),
                DiscardReturned(2, parse_tile("K7"), 3),
                DiscardForced(2, parse_tile("O9")),
            ),
        ),
        ("B1 K7", HasLaid(1, is_opening=False), (TurnTimedOut(2, ()), DiscardForced(2, parse_tile("K7")))),
        ("R5 F", HasLaid(1, is_opening=False), (TurnTimedOut(2, ()), DiscardForced(2, parse_tile("F")))),
        (
            "R5",
            HasLaid(1, is_opening=True),
            (TurnTimedOut(2, ()), RackFinished(2, parse_tile("R5"), is_pairs=False, is_at_once=True)),
        ),
    ],
)
def test_a_time_out_discards_without_a_penalty(
    rack: str, step: ToTake | ToDiscard | HasLaid, events: tuple[object, ...]
) -> None:
    game = at(four(rack), step)
    done = do(game, TimeOut(), NOW + 120_001)
    assert done.events[: len(events)] == events
    assert round_of(done.game).tiles == round_of(game).tiles
    assert round_of(done.game).penalties == ()


# Rounds


def test_a_round_names_the_seats_of_openings_and_penalties() -> None:
    round_ = round_of(at(four(LOOSE)))
    assert round_.names_its_seats
    others: tuple[DiscardRound, ...] = (
        replace(round_, penalties=(PenaltyScored(5, 101, PenaltyCause.OKEY_DISCARDED),)),
        replace(round_, table=Table((), (Opening(5, is_pairs=False, amount=101),))),
    )
    for other in others:
        assert not other.names_its_seats


def test_open_racks_show_what_was_left() -> None:
    game = replace(at(position(RACKS, "1:105 2:101 4:5p")), settings=RoomSettings(racks_shown=RacksShown.AFTER_ROUND))
    result = ended(game, discard("O1"))[2].results[0]
    assert [len(rack.tiles) for rack in result.racks] == [3, 0, 2, 2]
