"""Games of Okey for tests: from positions as text, and with random players."""

import random
from collections.abc import Iterator
from dataclasses import replace

from engine.actions import Action, Join, Resign, ReturnToSeat, StandIn, StartGame, StartNextRound, TimeOut
from engine.deal import Shuffle
from engine.discard.actions import DiscardTile, FinishHand, ShowIndicator, TakeDiscard, TakeFromPool, TurnAction
from engine.discard.game import round_of, rules_of
from engine.discard.hands import standing
from engine.discard.notation import parse_position
from engine.discard.round import DiscardRound, ToDiscard, ToTake
from engine.discard.ruleset import HAND_SIZE, OKEY, OPTIONS, Ruleset, Teams, problems, with_options
from engine.game import Aborted, Finished, Game, Playing, RoundOver
from engine.room_settings import DEFAULT_SETTINGS, AbsentAction, RacksShown, RoomSettings
from engine.seats import HOST, BotLevel, Player, Turn, from_seat
from engine.tiles import FALSE_JOKER, NATURALS
from engine.timers import due_ms
from engine.turns import Applied, apply, create
from support.positions import NAMES, NOW, do
from support.random_play import Change

TILES = (*NATURALS, *NATURALS, FALSE_JOKER, FALSE_JOKER)


def game_at(position: str, ruleset: Ruleset = OKEY, *, discarded: tuple[int, ...] = (), **round_: object) -> Game:
    """Returns a game in its first round at a position, whose tiles need not be the full tile set.

    Args:
        position: The position.
        ruleset: The rules.
        discarded: The seats that have discarded. Without any, it is the first turn of the seat to move.
        round_: Other parts of the round.
    """
    parsed = parse_position(position)
    seats = tuple(rack.seat for rack in parsed.racks)
    holds = next(len(rack.tiles) for rack in parsed.racks if rack.seat == parsed.turn_seat)
    made = DiscardRound(
        number=1,
        order=from_seat(seats[::-1], parsed.turn_seat),
        indicator=parsed.indicator,
        racks=parsed.racks,
        pool=parsed.pool,
        piles=parsed.piles,
        turn=Turn(parsed.turn_seat, NOW + 120_000, 9),
        step=ToDiscard() if holds > HAND_SIZE else ToTake(),
        discarded=discarded,
    )
    players = tuple(Player(seat, NAMES[seat - 1], ruleset.points_at_start) for seat in seats)
    return Game(ruleset, DEFAULT_SETTINGS, 10, players, Playing(replace(made, **round_)))  # type: ignore[arg-type]


def shuffle(seed: int) -> Shuffle:
    """Returns a random shuffle."""
    rng = random.Random(seed)
    return Shuffle(tuple(rng.sample(TILES, len(TILES))), tuple(rng.sample(TILES, len(TILES))))


def started(
    seed: int,
    ruleset: Ruleset = OKEY,
    bots: tuple[BotLevel | None, ...] = (None,) * 4,
    settings: RoomSettings = DEFAULT_SETTINGS,
) -> Game:
    """Returns a game at its first turn; each player is a person or a bot."""
    game = create(ruleset, settings).game
    for seat, level in enumerate(bots, 1):
        game = do(game, Join(NAMES[seat - 1], level, seat)).game
    return do(game, StartGame(HOST, shuffle(seed))).game


# Random games


def random_ruleset(rng: random.Random) -> Ruleset:
    """Returns a ruleset without problems, whose games take few rounds."""
    chosen = {name: rng.choice(row.usual) for name, row in OPTIONS.items() if rng.random() < 0.4}
    chosen |= {"match_rounds": rng.choice((1, 1, 2, 3)), "score_start": rng.choice((5, 5, 20))}
    if chosen.get("teams") is Teams.PAIRS:
        chosen |= {"players_min": 4, "players_max": 4}
    ruleset = with_options(OKEY, chosen)
    return ruleset if not problems(ruleset) else replace(ruleset, players_min=2)


def random_changes(
    seed: int, settings: RoomSettings = DEFAULT_SETTINGS, ruleset: Ruleset | None = None
) -> Iterator[Change]:
    """Returns the changes of a random game, in which some players are slow, resign, or are bots.

    The seed determines the ruleset unless it is given.
    """
    rng = random.Random(seed)
    ruleset = ruleset or random_ruleset(rng)
    settings = replace(
        settings,
        turn_time_limit_seconds=rng.choice((0, 30)),
        clock_total_seconds=rng.choice((0, 0, 0, 60)),
        absent_after_timeouts=rng.choice((1, 2, 3)),
        absent_action=rng.choice(tuple(AbsentAction)),
        racks_shown=rng.choice(tuple(RacksShown)),
    )
    return changes_under(ruleset, settings, rng)


def changes_under(ruleset: Ruleset, settings: RoomSettings, rng: random.Random) -> Iterator[Change]:
    """Yields the changes of a random game under some rules and settings."""
    applied, now_ms = create(ruleset, settings), NOW
    yield Change(None, now_ms, applied)
    actions = iter(_lobby(rng, ruleset))
    while not isinstance(applied.game.phase, Finished | Aborted):
        action = next(actions, None) or random_action(applied.game, rng)
        due = due_ms(applied.game)
        now_ms = (due or 0) + 1 if isinstance(action, TimeOut) else min(now_ms + rng.choice((0, 1000)), due or 2**50)
        done = apply(applied.game, action, now_ms)
        assert isinstance(done, Applied), (action, done)
        if done.events:
            applied = done
            yield Change(action, now_ms, applied)


def _lobby(rng: random.Random, ruleset: Ruleset) -> Iterator[Action]:
    players = rng.randint(ruleset.players_min, ruleset.players_max)
    bots = rng.random() < 0.3
    for seat in range(1, players + 1):
        yield Join(NAMES[seat - 1], rng.choice((None, BotLevel.EASY)) if bots and seat > 1 else None, seat)
    yield StartGame(HOST, shuffle(rng.randrange(10**6)))


def random_action(game: Game, rng: random.Random) -> Action:
    """Returns an action in a running game: a finish if there is one, and mostly a discard that does little harm."""
    if isinstance(game.phase, RoundOver):
        seat = rng.choice(game.active_seats)
        return Resign(seat) if rng.random() < 0.05 else StartNextRound(seat, shuffle(rng.randrange(10**6)))
    round_ = round_of(game)
    seat = round_.turn.seat
    if rng.random() < 0.001:
        return Resign(rng.choice(game.active_seats))
    if round_.turn.deadline_ms is not None and rng.random() < 0.02:
        return TimeOut()
    action = _turn(game, round_, seat, rng)
    if game.player(seat).stand_in is None:
        return action
    return StandIn(action) if rng.random() < 0.8 else rng.choice((action, ReturnToSeat(seat)))


def _turn(game: Game, round_: DiscardRound, seat: int, rng: random.Random) -> TurnAction:
    rules, tiles = rules_of(game), round_.rack(seat).tiles
    is_first = seat not in round_.discarded and round_.shown_by is None
    if rules.show_indicator and is_first and round_.indicator in tiles and rng.random() < 0.5:
        return ShowIndicator(seat)
    if isinstance(round_.step, ToTake):
        before = next(one for one in reversed(from_seat(round_.order, seat)) if one in game.active_seats)
        return TakeDiscard(seat) if round_.pile(before).tiles and rng.random() < 0.2 else TakeFromPool(seat)
    stands = standing(tiles, round_.okey, one_high=rules.run_one_high)
    if stands.missing == 0:
        return FinishHand(seat, stands.spare[0])
    return DiscardTile(seat, rng.choice(tiles if rng.random() < 0.02 else stands.spare))
