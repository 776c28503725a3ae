"""Applies events to a game. Nothing here refuses an event; a history that cannot have happened raises ValueError."""

from collections.abc import Iterable
from dataclasses import replace

from engine.clocks import full_bank_ms, with_full_banks
from engine.events import (
    AbortRequested,
    ClockStopped,
    Event,
    GameAborted,
    GameCreated,
    GameEnded,
    LobbyEvent,
    PlayerAbsent,
    PlayerJoined,
    PlayerKicked,
    PlayerLeft,
    PlayerReadied,
    PlayerResigned,
    PlayerReturned,
    RematchCreated,
    RoundEnded,
    RoundEvent,
    SeatTakenOver,
    SeatTokenRenewed,
    TurnTimedOut,
)
from engine.family import family_of
from engine.game import Aborted, Finished, Game, Lobby, Playing, RoundOver, round_of, with_result
from engine.seats import Player, ReservedSeat
from engine.unions import RoundStart, TurnAct


def advance(game: Game | None, events: Iterable[Event]) -> Game:
    """Returns the game after one change: all its events applied, the revision one higher.

    `game` is None for the change that creates it.
    """
    for event in events:
        game = evolve(game, event) if game else _created(event)
    if game is None:
        raise ValueError("a change must have at least one event")
    return Game(
        game.ruleset,
        game.settings,
        game.revision + 1,
        game.players,
        game.phase,
        game.results,
        game.reserved,
        game.position_seats,
        game.deal_commitment,
        game.deals,
    )


def replay(changes: Iterable[Iterable[Event]]) -> Game:
    """Returns the game after a history of changes, which starts with its creation."""
    game = None
    for events in changes:
        game = advance(game, events)
    if game is None:
        raise ValueError("a history must start with the game's creation")
    return game


def _created(event: Event) -> Game:
    if not isinstance(event, GameCreated):
        raise ValueError("a history must start with the game's creation")  # noqa: TRY004 - an impossible history
    return _in_lobby(Game(event.ruleset), event)


def evolve(game: Game, event: Event) -> Game:  # noqa: C901 - one case an event, each a line
    """Returns the game after one event. The revision is unchanged."""
    match event:
        case GameCreated() | PlayerJoined() | PlayerLeft() | PlayerKicked() | PlayerReadied():
            return _in_lobby(game, event)
        case PlayerResigned():
            return _resigned(game, event)
        case SeatTakenOver():
            return _taken_over(game, event)
        case PlayerAbsent(seat, stand_in):
            return _with_player(game, replace(game.player(seat), stand_in=stand_in))
        case PlayerReturned(seat):
            return _with_player(game, replace(game.player(seat), stand_in=None, timeouts_in_a_row=0))
        case ClockStopped(seat, time_left_ms):
            return _with_player(game, replace(game.player(seat), time_left_ms=time_left_ms))
        case RoundEnded(result, next_round_ms):
            return replace(with_result(game, result), phase=RoundOver(round_of(game), next_round_ms))
        case GameEnded(winners, opened, abandoned):
            finished = Finished(round_of(game), winners, abandoned)
            return replace(game, phase=finished, results=opened or game.results)
        case AbortRequested(seat):
            return _with_player(game, replace(game.player(seat), wants_abort=True))
        case GameAborted():
            return replace(game, phase=Aborted(game.round), reserved=())
        case RematchCreated(game_id):
            return _with_rematch(game, game_id)
        case SeatTokenRenewed():
            return game
        case _ if isinstance(event, RoundStart):
            return replace(_in_round(with_full_banks(game), event), deals=game.deals + bool(event.seed))
        case _:
            return _in_round(_with_timeouts(game, event), event)


def _with_player(game: Game, player: Player) -> Game:
    """Returns the game with one player replaced."""
    players = tuple([player if old.seat == player.seat else old for old in game.players])
    return Game(
        game.ruleset,
        game.settings,
        game.revision,
        players,
        game.phase,
        game.results,
        game.reserved,
        game.position_seats,
        game.deal_commitment,
        game.deals,
    )


def _with_timeouts(game: Game, event: RoundEvent) -> Game:
    """Returns the game with the player's time-outs in a row: a time-out adds one, an action in a turn ends them.

    A turn that began with an empty bank is not counted: the player had no time to act.
    """
    if not isinstance(event, TurnTimedOut | TurnAct):
        return game
    player = game.player(event.seat)
    is_counted = isinstance(event, TurnTimedOut)
    count = player.timeouts_in_a_row + (player.time_left_ms != 0) if is_counted else 0
    return game if count == player.timeouts_in_a_row else _with_player(game, replace(player, timeouts_in_a_row=count))


def _in_lobby(game: Game, event: LobbyEvent) -> Game:
    match event:
        case GameCreated(ruleset, settings, reserved, seats, commitment):
            return replace(
                game,
                ruleset=ruleset,
                settings=settings,
                reserved=reserved,
                position_seats=seats,
                deal_commitment=commitment,
            )
        case PlayerJoined():
            return _joined(game, event)
        case PlayerLeft(seat, new_host) | PlayerKicked(seat, new_host):
            return _left(game, seat, new_host)
        case PlayerReadied(seat, is_ready, seed):
            player = game.player(seat)
            return _with_player(game, replace(player, is_ready=is_ready, deal_seed=seed or player.deal_seed))


def _joined(game: Game, event: PlayerJoined) -> Game:
    """Returns the lobby after a player has taken a seat."""
    joined = Player(
        event.seat,
        event.name,
        game.ruleset.points_at_start,
        bot=event.bot,
        is_ready=event.bot is not None,
        is_host=event.is_host,
        is_program=event.is_program,
        deal_seed=event.deal_seed,
    )
    return replace(
        game,
        players=tuple(sorted((*game.players, joined), key=lambda p: p.seat)),
        phase=game.phase if event.starts_ms is None else Lobby(event.starts_ms),
        reserved=_without_seat(game.reserved, event.seat),
    )


def _left(game: Game, seat: int, new_host: int | None) -> Game:
    """Returns the lobby after a player has left it, or a reserved seat was given up."""
    players = (player for player in game.players if player.seat != seat)
    return replace(
        game,
        players=tuple(replace(p, is_host=True) if p.seat == new_host else p for p in players),
        phase=Lobby(),
        reserved=_without_seat(game.reserved, seat),
    )


def _without_seat(reserved: tuple[ReservedSeat, ...], seat: int) -> tuple[ReservedSeat, ...]:
    return tuple(one for one in reserved if one.seat != seat)


def _with_rematch(game: Game, game_id: str) -> Game:
    if not isinstance(game.phase, Finished | Aborted):
        raise ValueError("only a game that is over has a rematch")  # noqa: TRY004 - an impossible history
    return replace(game, phase=replace(game.phase, rematch_game_id=game_id))


def _resigned(game: Game, event: PlayerResigned) -> Game:
    """Returns the game with a player resigned."""
    game = _with_player(game, replace(game.player(event.seat), resigned=True, stand_in=None))
    return _in_round(game, event) if isinstance(game.phase, Playing) else game


def _taken_over(game: Game, event: SeatTakenOver) -> Game:
    """Returns the game with a new player in the seat of one who had resigned."""
    player = replace(
        game.player(event.seat),
        name=event.name,
        resigned=False,
        bot=event.bot,
        is_program=event.is_program,
        timeouts_in_a_row=0,
        time_left_ms=full_bank_ms(game),
        is_ready=event.bot is not None or game.player(event.seat).is_ready,
        wants_abort=False,
    )
    game = _with_player(game, player)
    if event.new_host is not None:
        game = replace(game, players=tuple(replace(one, is_host=one.seat == event.new_host) for one in game.players))
    return _in_round(game, event) if isinstance(game.phase, Playing) else game


def _in_round(game: Game, event: RoundEvent) -> Game:
    """Returns the game after an event that changes the round in progress, or starts one."""
    return Game(
        game.ruleset,
        game.settings,
        game.revision,
        game.players,
        Playing(family_of(game).evolve(game, event)),
        game.results,
        position_seats=game.position_seats,
        deal_commitment=game.deal_commitment,
        deals=game.deals,
    )
