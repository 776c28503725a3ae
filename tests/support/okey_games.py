"""Games of Okey for tests: from positions as text, and with random players."""

import random
from dataclasses import replace

from engine.actions import Join, StartGame
from engine.deal import Shuffle
from engine.discard.notation import parse_position
from engine.discard.round import DiscardRound, ToDiscard, ToTake
from engine.discard.ruleset import HAND_SIZE, OKEY, Ruleset
from engine.game import Game, Playing
from engine.room_settings import DEFAULT_SETTINGS, RoomSettings
from engine.seats import HOST, BotLevel, Player, Turn, from_seat
from engine.tiles import FALSE_JOKER, NATURALS
from engine.turns import create
from support.positions import NAMES, NOW, do

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
