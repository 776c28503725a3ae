"""The lobby and the ways in which a game ends without a winner: seats, host, readiness, aborting, rematch."""

from dataclasses import replace

import pytest

from engine.actions import (
    AbortGame,
    Action,
    AnnounceRematch,
    Join,
    KickPlayer,
    Leave,
    RenewSeatToken,
    Resign,
    SetReady,
    StartDueRound,
    StartGame,
    StartNextRound,
)
from engine.deal import Shuffle
from engine.events import (
    AbortRequested,
    GameAborted,
    PlayerJoined,
    PlayerKicked,
    PlayerLeft,
    PlayerReadied,
    RematchCreated,
    SeatTokenRenewed,
)
from engine.game import Aborted, Finished, Game, Lobby, Playing, RoundOver, bots_to_act, is_expired
from engine.melding.ruleset import SABRA, MatchEnd
from engine.replay import advance
from engine.room_settings import AbortBy, Bots, StartBy
from engine.seats import HOST, BotLevel, Player, ReservedSeat
from engine.tiles import tile_set
from engine.timers import due_ms
from engine.turns import Applied, apply, create_rematch
from engine.turns.lobby import LOBBY_CHANGES_MAX, START_DELAY_MS
from engine.violations import Reason, Violation
from support.positions import NOW, do, game_at, lobby, only_reason, play, refusal
from support.rooms import Rules, parts, room

SHUFFLE = Shuffle(tile_set(4, 2, 2), tile_set(4, 2, 2))
ANYONE = room(SABRA, start_by=StartBy.ANYONE)
ALL_READY = room(SABRA, start_by=StartBy.ALL_READY)
FULL_OR_READY = room(SABRA, start_by=StartBy.FULL_OR_READY, players_max=3)
TWO_ROUNDS = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
REMATCH = "a" * 32


def started(*names: str) -> Game:
    return do(lobby(*names), StartGame(HOST, SHUFFLE)).game


def over() -> Game:
    """Returns a game of two that ended with the first round; seat 1 won."""
    return do(
        game_at(". / 1{R1 R2 R3} 2{K9} / {O1 O2} / 1", replace(SABRA, initial_meld_threshold=0)), play(1, "[R1 R2 R3]")
    ).game


def between_rounds() -> Game:
    rules = replace(TWO_ROUNDS, initial_meld_threshold=0)
    return do(game_at(". / 1{R1 R2 R3} 2{K9} 3{K8} / {O1 O2} / 1", rules), play(1, "[R1 R2 R3]")).game


def aborted() -> Game:
    return do(started("Ada", "Ben"), AbortGame(1)).game


# Seats


def test_a_player_chooses_a_free_seat() -> None:
    game = do(lobby("Ada"), Join("Ben", seat=3)).game
    assert do(game, Join("Cleo")).events == (PlayerJoined(2, "Cleo"),)
    assert [player.seat for player in do(game, Join("Cleo", seat=2)).game.players] == [1, 2, 3]


@pytest.mark.parametrize("seat", [1, 3, 5])
def test_a_seat_that_is_taken_or_does_not_exist_is_refused(seat: int) -> None:
    game = do(lobby("Ada"), Join("Ben", seat=3)).game
    assert refusal(game, Join("Cleo", seat=seat)).violations == (
        Violation(Reason.SEAT_TAKEN, metadata=(("seat", seat),)),
    )


def test_a_full_lobby_is_full_whatever_seat_is_chosen() -> None:
    assert only_reason(lobby("Ada", "Ben", "Cleo", "Dan"), Join("Eve", seat=1)) is Reason.GAME_FULL


# The host


def test_the_player_who_joins_as_the_host_is_the_host() -> None:
    game = lobby("Ada", "Ben")
    assert [player.is_host for player in game.players] == [True, False]
    assert game.host_seat == 1
    assert do(lobby(), Join("Ada")).game.host_seat is None


@pytest.mark.parametrize("action", [Leave(1), KickPlayer(1, 1), KickPlayer(HOST, 1)])
def test_when_the_host_goes_the_lowest_person_is_the_host(action: Action) -> None:
    game = do(lobby("Ada"), Join("Bot", BotLevel.EASY)).game
    assert do(game, action).game.host_seat is None
    game = do(do(game, Join("Cleo")).game, Join("Dan")).game
    gone = do(game, action)
    event = PlayerLeft(1, 3) if isinstance(action, Leave) else PlayerKicked(1, 3)
    assert gone.events == (event,)
    assert gone.game.host_seat == 3


@pytest.mark.parametrize("action", [Leave(2), KickPlayer(1, 2)])
def test_when_another_player_goes_the_host_stays(action: Action) -> None:
    assert do(lobby("Ada", "Ben", "Cleo"), action).game.host_seat == 1


def test_only_the_host_removes_players() -> None:
    game = lobby("Ada", "Ben", "Cleo")
    assert do(game, KickPlayer(1, 2)).events == do(game, KickPlayer(HOST, 2)).events == (PlayerKicked(2),)
    assert only_reason(game, KickPlayer(2, 3)) is Reason.NOT_THE_HOST
    assert refusal(game, KickPlayer(1, 4)).violations == (
        Violation(Reason.PLAYER_NOT_IN_GAME, metadata=(("seat", 4),)),
    )


def test_the_host_removes_bots() -> None:
    game = do(lobby("Ada"), Join("Bot", BotLevel.HARD)).game
    assert [player.name for player in do(game, KickPlayer(1, 2)).game.players] == ["Ada"]


# Starting


def test_the_host_starts_the_game() -> None:
    game = lobby("Ada", "Ben")
    for seat in (1, HOST):
        assert isinstance(do(game, StartGame(seat, SHUFFLE)).game.phase, Playing)
    assert only_reason(game, StartGame(2, SHUFFLE)) is Reason.NOT_THE_HOST
    assert only_reason(lobby("Ada", ruleset=SABRA), StartGame(HOST, SHUFFLE)) is Reason.TOO_FEW_PLAYERS


def test_anyone_starts_the_game_if_the_rules_allow_it() -> None:
    game = lobby("Ada", "Ben", ruleset=ANYONE)
    for seat in (1, 2, HOST):
        assert isinstance(do(game, StartGame(seat, SHUFFLE)).game.phase, Playing)


def test_all_players_must_be_ready_if_the_rules_demand_it() -> None:
    game = do(lobby("Ada", "Ben", ruleset=ALL_READY), Join("Bot", BotLevel.EASY)).game
    ready = do(game, SetReady(1, is_ready=True))
    assert ready.events == (PlayerReadied(1, is_ready=True),)
    for seat in (1, 2, HOST):
        assert refusal(ready.game, StartGame(seat, SHUFFLE)).violations == (
            Violation(Reason.PLAYERS_NOT_READY, metadata=(("players", 3), ("ready", 2))),
        )
    all_ready = do(ready.game, SetReady(2, is_ready=True)).game
    for seat in (1, 2, HOST):
        assert isinstance(do(all_ready, StartGame(seat, SHUFFLE)).game.phase, Playing)
    unready = do(all_ready, SetReady(1, is_ready=False)).game
    assert only_reason(unready, StartGame(1, SHUFFLE)) is Reason.PLAYERS_NOT_READY


def test_a_player_who_is_ready_already_changes_nothing() -> None:
    game = lobby("Ada", "Ben")
    assert apply(game, SetReady(1, is_ready=False), NOW) == Applied(game, ())
    ready = do(game, SetReady(1, is_ready=True)).game
    assert apply(ready, SetReady(1, is_ready=True), NOW) == Applied(ready, ())


def test_a_lobby_has_a_last_change() -> None:
    game = replace(lobby("Ada", "Ben"), revision=LOBBY_CHANGES_MAX)
    ready = do(game, SetReady(1, is_ready=True)).game
    assert only_reason(ready, SetReady(1, is_ready=False)) is Reason.TOO_MANY_CHANGES
    refused: tuple[Action, ...] = (Join("Eve"), RenewSeatToken(1))
    for action in refused:
        assert refusal(game, action).violations == (
            Violation(Reason.TOO_MANY_CHANGES, metadata=(("changes", LOBBY_CHANGES_MAX),)),
        )
    accepted: tuple[Action, ...] = (Leave(1), KickPlayer(1, 2), StartGame(1, SHUFFLE), AbortGame(1))
    for action in accepted:
        assert do(game, action).game.revision == LOBBY_CHANGES_MAX + 1
    assert do(replace(started("Ada", "Ben"), revision=LOBBY_CHANGES_MAX), RenewSeatToken(1)).events
    assert do(replace(game, revision=LOBBY_CHANGES_MAX - 1), Join("Eve")).events


def test_few_players_who_are_ready_are_too_few() -> None:
    game = do(lobby("Ada", ruleset=ALL_READY), SetReady(1, is_ready=True)).game
    assert only_reason(game, StartGame(1, SHUFFLE)) is Reason.TOO_FEW_PLAYERS


def test_a_full_lobby_starts_by_itself_if_the_rules_say_so() -> None:
    game = lobby("Ada", "Ben", ruleset=FULL_OR_READY)
    assert due_ms(game) is None
    full = do(game, Join("Cleo"), NOW)
    assert full.events == (PlayerJoined(3, "Cleo", starts_ms=NOW + START_DELAY_MS),)
    assert due_ms(full.game) == NOW + START_DELAY_MS
    with pytest.raises(ValueError, match="no round is due"):
        do(full.game, StartDueRound(SHUFFLE), NOW + START_DELAY_MS - 1)
    started = do(do(full.game, SetReady(1, is_ready=True)).game, StartDueRound(SHUFFLE), NOW + START_DELAY_MS + 1)
    assert isinstance(started.game.phase, Playing)


@pytest.mark.parametrize("action", [Leave(2), KickPlayer(1, 2)])
def test_a_lobby_that_is_no_longer_full_does_not_start_by_itself(action: Action) -> None:
    full = do(lobby("Ada", "Ben", ruleset=FULL_OR_READY), Join("Cleo"), NOW).game
    game = do(full, action).game
    assert due_ms(game) is None
    assert due_ms(do(game, Join("Dan"), NOW + 1).game) == NOW + 1 + START_DELAY_MS


def test_players_who_are_ready_start_a_lobby_that_would_start_by_itself() -> None:
    game = lobby("Ada", "Ben", ruleset=FULL_OR_READY)
    assert only_reason(game, StartGame(1, SHUFFLE)) is Reason.PLAYERS_NOT_READY
    ready = do(do(game, SetReady(1, is_ready=True)).game, SetReady(2, is_ready=True)).game
    for seat in (1, 2):
        assert isinstance(do(ready, StartGame(seat, SHUFFLE)).game.phase, Playing)


@pytest.mark.parametrize("start_by", [StartBy.HOST, StartBy.ANYONE, StartBy.ALL_READY])
def test_other_full_lobbies_wait_for_a_player(start_by: StartBy) -> None:
    game = lobby("Ada", "Ben", "Cleo", "Dan", ruleset=room(SABRA, start_by=start_by))
    assert due_ms(game) is None


@pytest.mark.parametrize("action", [KickPlayer(1, 2), SetReady(1, is_ready=True)])
def test_a_started_game_has_no_lobby(action: Action) -> None:
    for game in (started("Ada", "Ben"), between_rounds(), over()):
        assert only_reason(game, action) is Reason.GAME_ALREADY_STARTED


# Aborting


@pytest.mark.parametrize("seat", [1, HOST])
def test_the_host_aborts_the_game_until_a_round_has_ended(seat: int) -> None:
    for game in (lobby("Ada", "Ben"), started("Ada", "Ben")):
        ended = do(game, AbortGame(seat))
        assert ended.events == (GameAborted(by_host=True),)
        assert ended.game.phase == Aborted(game.round)
    assert only_reason(lobby("Ada", "Ben"), AbortGame(2)) is Reason.NOT_THE_HOST


def test_the_votes_of_all_people_abort_the_game() -> None:
    game = do(do(lobby("Ada", "Ben", "Cleo"), Join("Bot", BotLevel.EASY)).game, StartGame(1, SHUFFLE)).game
    asked = do(do(game, Resign(1)).game, AbortGame(2))
    assert asked.events == (AbortRequested(2),)
    assert [player.wants_abort for player in asked.game.players] == [False, True, False, False]
    assert apply(asked.game, AbortGame(2), NOW) == Applied(asked.game, ())
    assert do(asked.game, AbortGame(3)).events == (AbortRequested(3), GameAborted(by_host=False))


def test_all_people_abort_a_round_if_the_rules_demand_it() -> None:
    rules = room(SABRA, abort_by=AbortBy.ALL)
    game = do(lobby("Ada", "Ben", ruleset=rules), StartGame(HOST, SHUFFLE)).game
    assert only_reason(game, AbortGame(HOST)) is Reason.GAME_NOT_ABORTABLE
    asked = do(game, AbortGame(1))
    assert asked.events == (AbortRequested(1),)
    assert do(asked.game, AbortGame(2)).events == (AbortRequested(2), GameAborted(by_host=False))
    assert do(lobby("Ada", "Ben", ruleset=rules), AbortGame(1)).events == (GameAborted(by_host=True),)


def test_a_program_is_marked_also_in_the_rematch_and_counts_as_a_person() -> None:
    game = do(lobby("Ada"), Join("Deep Tile", is_program=True)).game
    assert [(player.bot, player.is_program) for player in game.players] == [(None, False), (None, True)]
    again = create_rematch(do(game, AbortGame(HOST)).game).game
    assert again.reserved == (ReservedSeat(1, "Ada"), ReservedSeat(2, "Deep Tile", is_program=True))
    back = do(again, Join("Deep Tile", seat=2, takes_reserved=True))
    assert back.game.player(2).is_program


@pytest.mark.parametrize("join", [Join("Bot", BotLevel.EASY), Join("Deep Tile", is_program=True)])
def test_a_room_may_have_no_seats_for_bots(join: Join) -> None:
    rules = room(SABRA, bots=Bots.OFF)
    assert only_reason(lobby("Ada", ruleset=rules), join) is Reason.BOTS_NOT_ALLOWED
    assert do(lobby("Ada", ruleset=rules), Join("Ben")).game.player(2).name == "Ben"


def test_a_player_who_has_resigned_aborts_nothing() -> None:
    game = do(started("Ada", "Ben", "Cleo"), Resign(1)).game
    assert only_reason(game, AbortGame(1)) is Reason.PLAYER_RESIGNED
    assert do(game, AbortGame(HOST)).events == (GameAborted(by_host=True),)


def test_after_a_round_the_host_has_a_vote_only() -> None:
    game = between_rounds()
    game = replace(game, players=(replace(game.players[0], is_host=True), *game.players[1:]))
    assert only_reason(game, AbortGame(HOST)) is Reason.GAME_NOT_ABORTABLE
    assert do(game, AbortGame(1)).events == (AbortRequested(1),)
    votes = do(do(game, AbortGame(1)).game, AbortGame(2)).game
    assert do(votes, AbortGame(3)).game.phase == Aborted(game.round)


def test_the_operator_aborts_any_game_that_is_not_over() -> None:
    for game in (lobby("Ada", "Ben"), started("Ada", "Ben"), between_rounds()):
        assert do(game, AbortGame(HOST, is_forced=True)).events == (GameAborted(by_host=False),)
    assert only_reason(over(), AbortGame(HOST, is_forced=True)) is Reason.GAME_OVER


def test_votes_count_until_the_end_of_the_round() -> None:
    rules = replace(TWO_ROUNDS, initial_meld_threshold=0)
    game = do(game_at(". / 1{R1 R2 R3} 2{K9} / {O1 O2} / 1", rules), AbortGame(2)).game
    after = do(game, play(1, "[R1 R2 R3]")).game
    assert isinstance(after.phase, RoundOver)
    assert not any(player.wants_abort for player in after.players)


@pytest.mark.parametrize(
    "action",
    [
        *(Join("Eve"), Leave(1), KickPlayer(1, 2), SetReady(1, is_ready=True), StartGame(1, SHUFFLE)),
        *(StartNextRound(1, SHUFFLE), Resign(1), AbortGame(1), RenewSeatToken(1), play(1, "[R1 R2 R3]")),
    ],
)
def test_an_aborted_game_takes_no_action(action: Action) -> None:
    for game in (aborted(), do(lobby("Ada", "Ben"), AbortGame(1)).game):
        assert only_reason(game, action) is Reason.GAME_OVER


def test_an_aborted_game_has_no_deadline_and_no_bot_to_act() -> None:
    game = do(do(lobby("Ada"), Join("Bot", BotLevel.EASY)).game, StartGame(1, SHUFFLE)).game
    ended = do(game, AbortGame(1)).game
    assert not is_expired(ended, NOW * 1000)
    assert bots_to_act(ended) == ()


# Tokens and rematches


def test_a_renewed_token_changes_nothing_in_the_game() -> None:
    for game in (lobby("Ada", "Ben"), started("Ada", "Ben"), between_rounds()):
        for seat in (2, HOST):
            renewed = do(game, RenewSeatToken(seat))
            assert renewed.events == (SeatTokenRenewed(seat),)
            assert replace(renewed.game, revision=game.revision) == game
    assert only_reason(over(), RenewSeatToken(1)) is Reason.GAME_OVER


def test_the_token_of_a_person_is_reissued_until_the_game_ends() -> None:
    with_bot = do(lobby("Ada", "Ben"), Join("Bot", BotLevel.EASY)).game
    for game in (with_bot, do(with_bot, StartGame(1, SHUFFLE)).game):
        assert do(game, RenewSeatToken(2, is_reissued=True)).events == (SeatTokenRenewed(2),)
        for seat in (HOST, 3, 4):
            assert only_reason(game, RenewSeatToken(seat, is_reissued=True)) is Reason.PLAYER_NOT_IN_GAME
    assert only_reason(over(), RenewSeatToken(2, is_reissued=True)) is Reason.GAME_OVER
    assert do(rematch(), RenewSeatToken(4, is_reissued=True)).events == (SeatTokenRenewed(4),)


def test_a_game_that_is_over_gets_one_rematch() -> None:
    for game in (over(), aborted()):
        announced = do(game, AnnounceRematch(REMATCH))
        assert announced.events == (RematchCreated(REMATCH),)
        assert announced.game.rematch_game_id == REMATCH
        assert type(announced.game.phase) is type(game.phase)
        with pytest.raises(ValueError, match="announce only one"):
            do(announced.game, AnnounceRematch("b" * 32))
    for game in (lobby("Ada"), started("Ada", "Ben"), between_rounds()):
        assert game.rematch_game_id == ""
        assert only_reason(game, AnnounceRematch(REMATCH)) is Reason.GAME_NOT_OVER
        with pytest.raises(ValueError, match="only a game that is over has a rematch"):
            advance(game, (RematchCreated(REMATCH),))


def rematch(ruleset: Rules = ANYONE) -> Game:
    """Returns the rematch of Ada, a bot, and Cleo at seat 4."""
    game = do(do(lobby("Ada", ruleset=ruleset), Join("Bot", BotLevel.HARD)).game, Join("Cleo", seat=4)).game
    game = do(do(game, SetReady(4, is_ready=True)).game, StartGame(1, SHUFFLE)).game
    return create_rematch(do(do(game, Resign(4)).game, AbortGame(1)).game).game


def test_a_rematch_has_the_same_rules_and_reserves_the_seats() -> None:
    assert rematch() == Game(
        *parts(ANYONE),
        1,
        (Player(2, "Bot", bot=BotLevel.HARD, is_ready=True),),
        Lobby(),
        reserved=(ReservedSeat(1, "Ada"), ReservedSeat(4, "Cleo")),
    )


def test_a_reserved_seat_is_taken_by_its_owner_only() -> None:
    game = rematch()
    assert only_reason(game, Join("Dan", seat=1)) is Reason.SEAT_TAKEN
    assert only_reason(game, Join("Cleo")) is Reason.PLAYER_ALREADY_JOINED
    dan = do(game, Join("Dan")).game
    assert [player.seat for player in dan.players] == [2, 3]
    assert only_reason(dan, Join("Eve")) is Reason.GAME_FULL
    ada = do(dan, Join("Ada", seat=1, is_host=True, takes_reserved=True))
    assert ada.events == (PlayerJoined(1, "Ada", is_host=True),)
    assert ada.game.reserved == (ReservedSeat(4, "Cleo"),)


def test_a_rematch_starts_when_each_player_has_come() -> None:
    ada = do(rematch(), Join("Ada", seat=1, is_host=True, takes_reserved=True)).game
    assert refusal(ada, StartGame(1, SHUFFLE)).violations == (
        Violation(Reason.PLAYERS_NOT_READY, metadata=(("players", 3), ("ready", 1))),
    )
    assert due_ms(ada) is None
    cleo = do(ada, Join("Cleo", seat=4, takes_reserved=True), NOW)
    assert cleo.events == (PlayerJoined(4, "Cleo", starts_ms=NOW + START_DELAY_MS),)
    assert isinstance(do(cleo.game, StartDueRound(SHUFFLE), NOW + START_DELAY_MS + 1).game.phase, Playing)
    assert isinstance(do(cleo.game, StartGame(4, SHUFFLE)).game.phase, Playing)


@pytest.mark.parametrize("action", [Leave(4), KickPlayer(1, 4)])
def test_a_reserved_seat_is_given_up_or_taken_away(action: Action) -> None:
    ada = do(rematch(), Join("Ada", seat=1, is_host=True, takes_reserved=True)).game
    gone = do(ada, action)
    assert gone.events == (PlayerLeft(4) if isinstance(action, Leave) else PlayerKicked(4),)
    assert gone.game.reserved == ()
    assert due_ms(gone.game) is None
    assert isinstance(do(gone.game, StartGame(1, SHUFFLE)).game.phase, Playing)


def test_a_rematch_with_too_few_players_does_not_start_by_itself() -> None:
    game = do(lobby("Ada", "Ben"), StartGame(1, SHUFFLE)).game
    game = do(create_rematch(do(game, AbortGame(1)).game).game, Leave(2)).game
    alone = do(game, Join("Ada", seat=1, is_host=True, takes_reserved=True)).game
    assert due_ms(alone) is None
    assert due_ms(do(alone, Join("Cleo")).game) is None


def test_a_finished_game_keeps_its_winners_when_a_rematch_is_announced() -> None:
    phase = do(over(), AnnounceRematch(REMATCH)).game.phase
    assert isinstance(phase, Finished)
    assert phase.winners == (1,)
