"""The seats of players who have resigned, and who takes them over (open_seat)."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from engine.actions import AbortGame, Action, Join, Resign, StartGame, StartNextRound, TakeOverSeat, TimeOut
from engine.discard.actions import DiscardTile
from engine.discard.game import round_of as discard_round_of
from engine.discard.presets import PRESETS as DISCARD_PRESETS
from engine.discard.ruleset import Preset as DiscardPreset
from engine.events import GameEnded, PlayerReturned, RoundEnded, SeatTakenOver, TurnStarted
from engine.fair_deal import commitment_to, seed_of, shuffle_for
from engine.game import Aborted, Finished, Game, Playing, RoundEnd, RoundOver, bots_to_act
from engine.melding.actions import ClaimError, DrawTile, Pass
from engine.melding.events import LastChanceStarted
from engine.melding.game import round_of, rules_of
from engine.melding.presets import PRESETS
from engine.melding.ruleset import (
    SABRA,
    MatchEnd,
    PoolEmptyMode,
    Preset,
    StartPlayerNextRounds,
    TurnInvalidSubmission,
)
from engine.melding.turns.settlement import have_all_claimed
from engine.moves import RecordedPlayer
from engine.record import GameRecord, RecordError, replayed
from engine.record_text import RecordTextError, format_record, parse_record
from engine.room_settings import AbortBy, Bots, FairDeal, OpenSeat
from engine.seats import HOST, BotLevel, Player
from engine.sight import see, see_event
from engine.turns import Applied, apply, create
from engine.violations import Reason
from support.okey_games import random_action, shuffle, started
from support.positions import NOW, do, game_at, is_a, lobby, only_reason, play
from support.random_play import ANALYSIS, Change, RandomPlayers, random_shuffle
from support.records import check_record, recorded
from support.rooms import parts, room, room_of
from support.soak import few_of

POOL = " ".join(f"{color}{value}" for color in "KOB" for value in range(1, 14))
HIDDEN_POOL = " ".join(reversed(POOL.split()))
THREE = f". / 1{{R1 R9}} 2{{R2 R9}} 3{{R3 R9}} / {{{POOL}}} / 1"
OPEN = room(SABRA, open_seat=OpenSeat.ANYONE)
ROUNDS = room(OPEN, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=3)
BOT = TakeOverSeat(HOST, 2, "Bot", BotLevel.HARD)
PERSON = TakeOverSeat(HOST, 2, "Zoë")


def resigned(game: Game, *seats: int) -> Game:
    """Returns a game after players have resigned."""
    for seat in seats:
        game = do(game, Resign(seat)).game
    return game


def with_host(game: Game, host: int) -> Game:
    return replace(game, players=tuple(replace(one, is_host=one.seat == host) for one in game.players))


# Who may


def test_a_bot_plays_on_with_the_same_rack_and_points() -> None:
    game = game_at(THREE)
    game = replace(
        game, players=tuple(replace(one, total_points=one.seat, timeouts_in_a_row=2) for one in game.players)
    )
    taken = do(resigned(game, 2), BOT)
    assert taken.events == (SeatTakenOver(2, "Bot", BotLevel.HARD),)
    assert taken.game.player(2) == Player(2, "Bot", 2, bot=BotLevel.HARD, is_ready=True)
    assert round_of(taken.game) == round_of(game)
    ended = do(taken.game, DrawTile(1))
    assert is_a(ended.events[-1], TurnStarted).turn.seat == 2
    assert bots_to_act(ended.game) == (2,)


def test_a_person_plays_on_without_a_mark_of_the_one_who_resigned() -> None:
    voted = do(do(game_at(THREE, OPEN), AbortGame(2)).game, Resign(2)).game
    assert voted.player(2).wants_abort
    game = do(voted, replace(PERSON, is_program=True)).game
    assert game.player(2) == Player(2, "Zoë", is_program=True)
    moved = do(do(game, DrawTile(1)).game, DrawTile(2)).game
    assert see(moved, 2).rack == round_of(moved).rack(2).tiles


def test_the_new_player_has_the_seed_of_the_seat_and_a_full_bank() -> None:
    game = game_at(THREE, room(OPEN, clock_total_seconds=60))
    players = tuple(replace(one, time_left_ms=5, deal_seed=b"seed") for one in game.players)
    taken = do(resigned(replace(game, players=players), 2), PERSON).game
    assert (taken.player(2).deal_seed, taken.player(2).time_left_ms) == (b"seed", 60_000)
    assert taken.player(3).time_left_ms == 5


@pytest.mark.parametrize(
    ("setting", "reasons"),
    [
        (OpenSeat.OFF, {BOT: Reason.GAME_ALREADY_STARTED, PERSON: Reason.GAME_ALREADY_STARTED}),
        (OpenSeat.BOT, {PERSON: Reason.GAME_ALREADY_STARTED}),
        (OpenSeat.ANYONE, {}),
    ],
)
def test_the_setting_decides_who_may_take_over(setting: OpenSeat, reasons: dict[TakeOverSeat, Reason]) -> None:
    game = resigned(game_at(THREE, room(SABRA, open_seat=setting)), 2)
    for action, reason in reasons.items():
        assert only_reason(game, action) is reason
    for action in {BOT, PERSON} - set(reasons):
        assert not do(game, action).game.player(2).resigned


def test_only_people_may_take_over_where_bots_have_no_seats() -> None:
    game = resigned(game_at(THREE, room(OPEN, bots=Bots.OFF)), 2)
    assert only_reason(game, BOT) is Reason.BOTS_NOT_ALLOWED
    assert only_reason(game, replace(PERSON, is_program=True)) is Reason.BOTS_NOT_ALLOWED
    assert do(game, PERSON).game.player(2).name == "Zoë"


def test_the_host_decides_on_a_bot_and_if_the_host_has_resigned_each_player_who_has_not() -> None:
    led = resigned(with_host(game_at(THREE), 1), 2)
    assert only_reason(led, replace(BOT, seat=3)) is Reason.NOT_THE_HOST
    assert only_reason(led, replace(BOT, seat=2)) is Reason.NOT_THE_HOST
    assert do(led, replace(BOT, seat=1)).game.player(2).bot
    four = game_at(f". / 1{{R1 R9}} 2{{R2 R9}} 3{{R3 R9}} 4{{R4 R9}} / {{{POOL}}} / 1")
    left = resigned(with_host(four, 4), 4, 2)
    assert only_reason(left, replace(BOT, seat=2)) is Reason.NOT_THE_HOST
    for seat in (1, 4, HOST):
        assert do(left, replace(BOT, seat=seat)).game.player(2).bot
    assert (
        only_reason(resigned(game_at(THREE), 2), replace(BOT, seat=1)) is Reason.NOT_THE_HOST
    )  # a host without a seat


@pytest.mark.parametrize(
    ("host", "action", "expected"),
    [
        (2, PERSON, 2),
        (2, BOT, 1),
        (1, BOT, None),
        (1, PERSON, None),
    ],
)
def test_a_person_is_host_in_place_of_a_host_who_resigned(
    host: int, action: TakeOverSeat, expected: int | None
) -> None:
    taken = do(resigned(with_host(game_at(THREE, OPEN), host), 2), action)
    assert is_a(taken.events[0], SeatTakenOver).new_host == expected
    assert taken.game.host_seat == (expected or host)


def test_the_seat_of_a_bot_is_the_host_where_no_person_plays_on() -> None:
    game = with_host(game_at(THREE), 2)
    bots = tuple(replace(one, bot=None if one.seat == 2 else BotLevel.EASY) for one in game.players)
    taken = do(resigned(replace(game, players=bots), 2), BOT).game
    assert taken.host_seat == 2


# Refusals


def test_a_seat_is_taken_over_only_if_its_player_has_resigned() -> None:
    game = resigned(game_at(THREE, OPEN), 2)
    assert only_reason(game, replace(BOT, taken=3)) is Reason.SEAT_TAKEN
    assert only_reason(game, replace(BOT, taken=4)) is Reason.PLAYER_NOT_IN_GAME
    assert only_reason(game, replace(BOT, name="Cleo")) is Reason.PLAYER_ALREADY_JOINED
    assert do(game, replace(PERSON, name="Ben")).game.player(2).name == "Ben"
    assert only_reason(do(game, BOT).game, BOT) is Reason.SEAT_TAKEN


def test_a_seat_is_taken_over_only_in_a_started_game() -> None:
    assert only_reason(lobby("Ada", "Ben"), BOT) is Reason.GAME_NOT_STARTED
    over = resigned(game_at(THREE), 2, 3)
    assert only_reason(over, BOT) is Reason.GAME_OVER
    aborted = do(game_at(THREE), AbortGame(HOST, is_forced=True)).game
    assert only_reason(aborted, BOT) is Reason.GAME_OVER


def round_over(game: Game) -> Game:
    """Returns a game after its round, which the player of the turn ends by going out."""
    return do(game, play(1, "[R1 R2 R3]")).game


GOES_OUT = f". / 1{{R1 R2 R3}} 2{{R2 R9}} 3{{R3 R9}} 4{{R4 R9}} / {{{POOL}}} / 1"


def next_round(game: Game) -> Game:
    ruleset = rules_of(game)
    return do(game, StartNextRound(1, random_shuffle(ruleset, random.Random(1), len(game.active_seats)))).game


@pytest.mark.parametrize("start", list(StartPlayerNextRounds))
def test_a_seat_without_a_rack_waits_for_the_pause_between_two_rounds(start: StartPlayerNextRounds) -> None:
    rules = room(ROUNDS, initial_meld_threshold=0, start_player_next_rounds=start)
    over = resigned(round_over(game_at(GOES_OUT, rules)), 2)
    second = next_round(over)
    assert sorted(round_of(second).order) == [1, 3, 4]
    assert only_reason(second, BOT) is Reason.ROUND_IN_PROGRESS
    in_pause = do(over, PERSON).game
    assert isinstance(in_pause.phase, RoundOver)
    dealt = next_round(in_pause)
    assert sorted(round_of(dealt).order) == [1, 2, 3, 4]
    assert len(round_of(dealt).rack(2).tiles) == 14


# What follows


def test_a_round_ends_blocked_only_when_the_new_player_has_passed_too() -> None:
    game = resigned(game_at(". / 1{R1 R9} 2{R2 R9} 3{R3 R9} / {} / 1", OPEN), 2)
    game = do(do(do(game, Pass(1)).game, BOT).game, Pass(3)).game
    ended = do(do(game, Pass(1)).game, Pass(2)).events
    assert is_a(ended[-2], RoundEnded).result.end is RoundEnd.BLOCKED
    assert {seat.seat for seat in is_a(ended[-2], RoundEnded).result.seats} == {1, 2, 3}


def test_the_new_player_wins_like_any_other() -> None:
    game = game_at(f". / 1{{R1 R9}} 2{{R2 R3 R4}} 3{{R3 R9}} / {{{POOL}}} / 1", room(OPEN, initial_meld_threshold=0))
    game = do(do(resigned(game, 2), PERSON).game, DrawTile(1)).game
    ended = do(game, play(2, "[R2 R3 R4]")).events
    assert is_a(ended[-1], GameEnded).winners == (2,)


def test_a_seat_that_is_taken_over_gets_no_last_turn_back() -> None:
    rules = room(OPEN, pool_empty_mode=PoolEmptyMode.ONE_LAST_CHANCE)
    began = do(game_at(". / 1{R1 R9} 2{R2 R9} 3{R3 R9} / {K1} / 1", rules), DrawTile(1))
    assert any(isinstance(event, LastChanceStarted) for event in began.events)
    lost = resigned(began.game, 3)
    seats = see(lost, 1)
    taken = do(lost, replace(PERSON, taken=3)).game
    assert see(taken, 1).round == seats.round
    assert 3 not in (round_of(taken).last_chance or ())


def test_the_new_player_has_a_vote_on_a_claim() -> None:
    rules = room(OPEN, turn_invalid_submission=TurnInvalidSubmission.PENALISE_ON_UNANIMOUS_CLAIM)
    shown = do(resigned(game_at(THREE, rules), 2), play(1, "[R1]")).game
    taken = do(shown, PERSON).game
    assert not have_all_claimed(taken, round_of(taken), 3)
    assert have_all_claimed(taken, round_of(taken), 2, 3)
    voted = do(taken, ClaimError(2, shown.revision, agrees=False)).game
    assert is_a(voted.phase, Playing).round.turn.seat == 1


def test_adding_a_bot_is_no_return_of_an_absent_host() -> None:
    game = with_host(resigned(game_at(THREE), 2), 1)
    players = tuple(replace(one, stand_in=BotLevel.EASY) if one.seat == 1 else one for one in game.players)
    taken = do(replace(game, players=players), replace(BOT, seat=1))
    assert not any(isinstance(event, PlayerReturned) for event in taken.events)
    assert taken.game.player(1).stand_in


def test_everyone_sees_who_takes_a_seat_over_and_nothing_else() -> None:
    game = do(resigned(game_at(THREE, OPEN), 2), PERSON).game
    event = SeatTakenOver(2, "Zoë")
    for viewer in (None, HOST, 1, 2, 3):
        assert see_event(event, viewer) == event
        assert see(game, viewer).rack == (round_of(game).rack(viewer).tiles if viewer else ())


@pytest.mark.parametrize("viewer", [None, HOST, 1])
@pytest.mark.parametrize("action", [BOT, PERSON, replace(BOT, taken=3), replace(BOT, name="Cleo")])
def test_a_take_over_or_its_refusal_looks_the_same_whatever_is_hidden(viewer: int | None, action: TakeOverSeat) -> None:
    worlds = [game_at(THREE, OPEN), game_at(f". / 1{{R1 R9}} 2{{J B2}} 3{{K5 K6}} / {{{HIDDEN_POOL}}} / 1", OPEN)]
    seen: list[object] = []
    for world in worlds:
        outcome = apply(resigned(world, 2), action, NOW)
        if isinstance(outcome, Applied):
            seen.append((see(outcome.game, viewer), [see_event(event, viewer) for event in outcome.events]))
        else:
            seen.append(outcome)
    assert seen[0] == seen[1]


# Every family


OF_THREE = [preset for preset in Preset if PRESETS[preset].players_max > 2]
"""The presets of more than two players: a game of two ends when one of them resigns."""


@pytest.mark.parametrize("name", [*few_of(OF_THREE, 4), *few_of(DiscardPreset, 3)])
def test_a_bot_takes_over_in_the_games_of_every_preset_and_the_record_plays_again(name: Preset | DiscardPreset) -> None:
    changes = list(game_with_a_take_over(name))
    taken = [change for change in changes if any(isinstance(one, SeatTakenOver) for one in change.applied.events)]
    assert len(taken) == 1
    assert changes[-1].applied.game.player(2).bot is BotLevel.HARD
    check_record(changes)


def game_with_a_take_over(name: Preset | DiscardPreset) -> list[Change]:
    """Returns the changes of a game in which a bot takes over seat 2, and all seats have turns before and after."""
    rng = random.Random(str(name))
    act: Callable[[Game], Action] = RandomPlayers(rng).action
    if isinstance(name, Preset):
        rules, settings = parts(room_of(name))
        start, joined = random_shuffle(rules, rng, 4), range(1, min(4, rules.players_max) + 1)
        applied = create(rules, settings)
    else:
        start, joined = shuffle(1, DISCARD_PRESETS[name]), range(1, 5)
        applied, act = create(DISCARD_PRESETS[name]), partial(random_action, rng=rng)
    changes = [Change(None, NOW, applied)]
    lobby_actions = [Join(f"player {seat}", seat=seat, is_host=seat == 1) for seat in joined]
    forced: dict[int, Action] = {20: Resign(2), 22: BOT}
    queue: list[Action] = [*lobby_actions, StartGame(HOST, start)]
    while len(changes) < 80 and not isinstance(applied.game.phase, Finished | Aborted):
        action = queue.pop(0) if queue else forced.get(len(changes)) or act(applied.game)
        if isinstance(action, Resign | TakeOverSeat | AbortGame | TimeOut) and action not in forced.values():
            continue
        applied = do(applied.game, action, NOW, ANALYSIS)
        changes.append(Change(action, NOW, applied))
    return changes


def test_a_seat_that_resigned_with_a_tile_taken_waits_for_the_next_round() -> None:
    """In a game of discards it has one tile too many to finish, unless it has opened."""
    game = started(1, bots=(None,) * 4)
    first = discard_round_of(game).order[0]
    taking = replace(BOT, taken=first)
    assert only_reason(resigned(game, first), taking) is Reason.ROUND_IN_PROGRESS
    discarded = do(game, DiscardTile(first, discard_round_of(game).rack(first).tiles[0])).game
    assert do(resigned(discarded, first), taking).game.player(first).bot


# Records


def recorded_take_over(action: TakeOverSeat) -> GameRecord:
    """Returns the record of a game whose second player resigns and is followed by another one."""
    changes = [Change(None, NOW, create(*parts(OPEN)))]
    start = StartGame(HOST, random_shuffle(SABRA, random.Random(3), 3))
    steps: list[Action] = [Join("Ada"), Join("Ben"), Join("Cleo"), start, Resign(2), action]
    for step in steps:
        changes.append(Change(step, NOW, do(changes[-1].applied.game, step)))
    return recorded(changes)


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (BOT, "7 0.000 2 takeover hard Bot"),
        (replace(BOT, bot=BotLevel.MASTER, name="A  bot"), "7 0.000 2 takeover master A  bot"),
        (PERSON, "7 0.000 2 takeover person Zoë"),
        (replace(PERSON, is_program=True), "7 0.000 2 takeover program Zoë"),
    ],
)
def test_a_take_over_is_a_move_with_the_new_player(action: TakeOverSeat, line: str) -> None:
    record = recorded_take_over(action)
    text = format_record(record)
    assert text.splitlines()[-1] == line
    assert parse_record(text) == record
    *_, last = replayed(record)
    assert (last.after.player(2).name, last.after.player(2).bot) == (action.name, action.bot)


@pytest.mark.parametrize("words", ["", "hard", "person", "nobody Zoë", f"person {'x' * 41}"])
def test_a_take_over_without_a_player_is_no_text_of_a_record(words: str) -> None:
    text = format_record(recorded_take_over(BOT)).replace("takeover hard Bot", f"takeover {words}")
    with pytest.raises(RecordTextError):
        parse_record(text)


@pytest.mark.parametrize("player", [None, RecordedPlayer(3, "Zoë"), RecordedPlayer(2, "Zoë", deal_seed=b"x")])
def test_a_take_over_needs_the_player_of_its_seat(player: RecordedPlayer | None) -> None:
    record = recorded_take_over(BOT)
    wrong = replace(record, moves=(*record.moves[:-1], replace(record.moves[-1], player=player)))
    with pytest.raises(RecordError, match="incomplete"):
        list(replayed(wrong))


def test_no_other_move_has_a_player() -> None:
    record = recorded_take_over(BOT)
    resigns = replace(record.moves[-2], player=RecordedPlayer(2, "Zoë"))
    with pytest.raises(RecordError, match="incomplete"):
        list(replayed(replace(record, moves=(*record.moves[:-2], resigns, record.moves[-1]))))


def test_a_take_over_of_a_seat_that_has_not_resigned_breaks_the_rules() -> None:
    record = recorded_take_over(BOT)
    with pytest.raises(RecordError) as raised:
        list(replayed(replace(record, moves=(*record.moves[:-2], record.moves[-1]))))
    assert [one.reason for one in raised.value.violations] == [Reason.SEAT_TAKEN]


def test_fair_deals_follow_from_the_seeds_of_the_start_after_a_take_over() -> None:
    """Also the deal of the next round, for which the new player counts."""
    secret = b"s" * 32
    rules = room(ROUNDS, fair_deal=FairDeal.COMMITTED, abort_by=AbortBy.ALL)
    changes = [Change(None, NOW, create(*parts(rules), deal_commitment=commitment_to(secret)))]

    def then(action: Action) -> Game:
        changes.append(Change(action, NOW, do(changes[-1].applied.game, action)))
        return changes[-1].applied.game

    for seat, name in enumerate(("Ada", "Ben", "Cleo", "Dan"), 1):
        game = then(Join(name, seat=seat, deal_seed=name.encode()))
    game = then(StartGame(HOST, shuffle_for(game, seed_of(secret, 1))))
    then(Resign(2))
    game = then(PERSON)
    while isinstance(game.phase, Playing):
        seat = round_of(game).turn.seat
        game = then(DrawTile(seat) if round_of(game).pool else Pass(seat))
    assert isinstance(game.phase, RoundOver)
    then(StartNextRound(1, shuffle_for(game, seed_of(secret, 2))))
    record = recorded(changes)
    assert [player.deal_seed for player in record.players] == [b"Ada", b"Ben", b"Cleo", b"Dan"]
    assert len(list(replayed(record))) == len(record.moves)
