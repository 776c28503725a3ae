"""Games of discards for tests: from positions as text, and with random players."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from engine.actions import Action, Join, Resign, ReturnToSeat, StandIn, StartGame, StartNextRound, TimeOut
from engine.deal import Shuffle
from engine.discard.actions import (
    DiscardTile,
    FinishHand,
    LayTiles,
    PassTurn,
    ReturnDiscard,
    ShowIndicator,
    TakeDiscard,
    TakeFromPool,
    TakeTrump,
    TurnAction,
)
from engine.discard.bots import win_concealed
from engine.discard.game import round_of, rules_of
from engine.discard.hands import standing
from engine.discard.laying import TurnAtTable, judge_turn
from engine.discard.melds import Arrangement
from engine.discard.named_hands import NamedHand
from engine.discard.notation import parse_position
from engine.discard.presets import AMERICAN, INTERNATIONAL, OKEY_101
from engine.discard.round import DiscardRound, HasLaid, ToDiscard, ToTake
from engine.discard.ruleset import HAND_SIZE, OKEY, OPTIONS, Ruleset, Teams, problems, with_options
from engine.discard.table import Table, growths
from engine.discard.table_bots import can_lay, laying
from engine.fair_deal import commitment_to
from engine.game import Aborted, Finished, Game, Playing, RoundOver
from engine.room_settings import DEFAULT_SETTINGS, AbsentAction, OpenSeat, RacksShown, RoomSettings
from engine.seats import HOST, BotLevel, Player, Turn, from_seat
from engine.tiles import FALSE_JOKER, NATURALS
from engine.timers import due_ms
from engine.turns import Applied, apply, create
from support.fair_deals import fairly
from support.open_seats import random_take_over
from support.positions import NAMES, NOW, do
from support.random_play import Change

TILES = (*NATURALS, *NATURALS, FALSE_JOKER, FALSE_JOKER)


def game_at(position: str, ruleset: Ruleset = OKEY, *, discarded: tuple[int, ...] = (), **round_: object) -> Game:
    """Returns a game in its first round at a position, whose tiles need not be the full tile set.

    Args:
        position: The position.
        ruleset: The rules.
        discarded: The seats that have discarded. Without any, it is the first turn of the seat to move.
        round_: Other parts of the round. Beside a table the seat to move must take a tile unless its step is given.
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
        step=ToDiscard() if holds > HAND_SIZE and parsed.table is None else ToTake(),
        discarded=discarded,
        table=parsed.table,
        trump=parsed.trump,
    )
    players = tuple(Player(seat, NAMES[seat - 1], ruleset.points_at_start) for seat in seats)
    return Game(ruleset, DEFAULT_SETTINGS, 10, players, Playing(replace(made, **round_)))  # type: ignore[arg-type]


def shuffle(seed: int, ruleset: Ruleset = OKEY) -> Shuffle:
    """Returns a random shuffle."""
    rng, tiles = random.Random(seed), NATURALS * 2 + ruleset.tiles(4)[-2:]
    return Shuffle(tuple(rng.sample(tiles, len(tiles))), tuple(rng.sample(tiles, len(tiles))))


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
    return do(game, StartGame(HOST, shuffle(seed, ruleset))).game


# Random games


_OF_OKEY = (
    "players_min",
    "players_max",
    "teams",
    "run_one_high",
    "show_indicator",
    "score_start",
    "score_false_finish",
    "match_rounds",
)


def random_ruleset(rng: random.Random) -> Ruleset:
    """Returns a ruleset without problems, whose games take few rounds."""
    chosen = {name: rng.choice(OPTIONS[name].usual) for name in _OF_OKEY if rng.random() < 0.4}
    chosen |= {"match_rounds": rng.choice((1, 1, 2, 3)), "score_start": rng.choice((5, 5, 20))}
    if chosen.get("teams") is Teams.PAIRS:
        chosen |= {"players_min": 4, "players_max": 4}
    ruleset = with_options(OKEY, chosen)
    return ruleset if not problems(ruleset) else replace(ruleset, players_min=2)


_OF_101 = (
    "hand_size",
    "run_one_high",
    "opening_points",
    "opening_pairs",
    "opening_rises",
    "pair_opener_tiles",
    "score_discard_penalty",
    "score_return_penalty",
)


def random_101_ruleset(rng: random.Random) -> Ruleset:
    """Returns a ruleset of 101 Okey without problems, whose games take few rounds."""
    chosen = {name: rng.choice(OPTIONS[name].usual) for name in _OF_101 if rng.random() < 0.5}
    chosen |= {"match_rounds": rng.choice((1, 1, 2, 3)), "players_min": 2}
    if rng.random() < 0.3:
        chosen |= {"teams": Teams.PAIRS, "players_min": 4}
    ruleset = with_options(OKEY_101, chosen)
    return ruleset if not problems(ruleset) else replace(ruleset, pair_opener_tiles=0)


_OF_JOKERS = (
    "trump",
    "opening_points",
    "taken_discard",
    "wild_retrieval",
    "pool_empty",
    "score_trump_twin",
    "score_round_up",
    "run_one_high",
)
EASY_HANDS = (NamedHand("TWO_COLORS", (90, 80, 70), colors_max=2), NamedHand("GROUPS", (99, 98, 97), groups_min=1))
"""Hands that random games hold now and then, beside a Foot."""


def random_joker_ruleset(rng: random.Random) -> Ruleset:
    """Returns a ruleset of American or International Rummikub without problems, whose games take few rounds."""
    preset = rng.choice((AMERICAN, INTERNATIONAL))
    chosen = {name: rng.choice(OPTIONS[name].usual) for name in _OF_JOKERS if rng.random() < 0.3}
    chosen |= {"match_rounds": rng.choice((1, 1, 2, 3)), "opening_points": rng.choice((30, 30, 50, 101))}
    if preset is INTERNATIONAL:
        chosen["hands"] = rng.choice((INTERNATIONAL.hands, EASY_HANDS))
    ruleset = with_options(preset, chosen)
    return ruleset if not problems(ruleset) else replace(preset, match_rounds=1)


def random_changes(
    seed: int,
    choose: Callable[[random.Random], Ruleset] = random_ruleset,
    **chosen: Any,  # noqa: ANN401 - settings by name
) -> Iterator[Change]:
    """Returns the changes of a random game, in which some players are slow, resign, or are bots."""
    rng = random.Random(seed)
    ruleset = choose(rng)
    settings = RoomSettings(
        turn_time_limit_seconds=rng.choice((0, 30)),
        clock_total_seconds=rng.choice((0, 0, 0, 60)),
        absent_after_timeouts=rng.choice((1, 2, 3)),
        absent_action=rng.choice(tuple(AbsentAction)),
        racks_shown=rng.choice(tuple(RacksShown)),
        open_seat=tuple(OpenSeat)[seed % 3],
    )
    return changes_under(ruleset, replace(settings, **chosen), rng)


def changes_under(
    ruleset: Ruleset, settings: RoomSettings, rng: random.Random, deal_secret: bytes = b""
) -> Iterator[Change]:
    """Yields the changes of a random game under some rules and settings; the secret is as in `random_play`."""
    applied, now_ms = create(ruleset, settings, deal_commitment=commitment_to(deal_secret)), NOW
    yield Change(None, now_ms, applied)
    actions = iter(_lobby(rng, ruleset))
    while not isinstance(applied.game.phase, Finished | Aborted):
        action = next(actions, None) or random_action(applied.game, rng)
        if deal_secret:
            action = fairly(applied.game, action, deal_secret)
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
    yield StartGame(HOST, shuffle(rng.randrange(10**6), ruleset))


def random_action(game: Game, rng: random.Random) -> Action:
    """Returns an action in a running game: a finish if there is one, and mostly a discard that does little harm."""
    taking = random_take_over(game, rng)
    if taking:
        return taking
    if isinstance(game.phase, RoundOver):
        seat = rng.choice(game.active_seats)
        return (
            Resign(seat) if rng.random() < 0.05 else StartNextRound(seat, shuffle(rng.randrange(10**6), rules_of(game)))
        )
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
    if round_.table is not None:
        return _turn_at_table(game, round_, round_.table, rng)
    is_first = seat not in round_.discarded and round_.shown_by is None
    if rules.show_indicator and is_first and round_.indicator in tiles and rng.random() < 0.5:
        return ShowIndicator(seat)
    if isinstance(round_.step, ToTake):
        before = next(one for one in reversed(from_seat(round_.order, seat)) if one in game.active_seats)
        return TakeDiscard(seat) if round_.pile(before).tiles and rng.random() < 0.2 else TakeFromPool(seat)
    stands = standing(tiles, round_.okey, one_high=rules.run_one_high)
    if stands.missing == 0 or (rules.score_false_finish and rng.random() < 0.02):
        return FinishHand(seat, stands.spare[0])
    return DiscardTile(seat, rng.choice(tiles if rng.random() < 0.02 else stands.spare))


def _turn_at_table(game: Game, round_: DiscardRound, table: Table, rng: random.Random) -> TurnAction:
    rules, turn = rules_of(game), round_.turn_at(table)
    seat, tiles = turn.seat, turn.rack
    if isinstance(round_.step, ToTake):
        before = next(one for one in reversed(from_seat(round_.order, seat)) if one in game.active_seats)
        newest = round_.pile(before).tiles[-1:]
        if round_.trump_to_take and table.opening(seat) and rng.random() < 0.3:
            return TakeTrump(seat)
        takes = newest and (rng.random() < 0.05 or can_lay(turn, newest[0], rules))
        if not round_.pool and not takes:
            return PassTurn(seat)
        return TakeDiscard(seat) if takes else TakeFromPool(seat)
    concealed = win_concealed(turn, rules) if rules.concealed_wins and turn.owed is None else None
    if concealed:
        return concealed
    if isinstance(round_.step, HasLaid) or round_.step.taken is not None:
        after = random_step(turn, rules, rng)
        if after:
            return LayTiles(seat, after)
    if turn.owed is not None:
        return ReturnDiscard(seat)
    return DiscardTile(seat, rng.choice(tiles))


def random_step(turn: TurnAtTable, ruleset: Ruleset, rng: random.Random) -> Arrangement | None:
    """Returns a legal step of a turn: a good one, or one tile laid off; None for none, as it happens."""
    if rng.random() < 0.5:
        return laying(turn, ruleset, keeps_okeys=rng.random() < 0.5)
    melds, tiles = turn.table.melds, rng.sample(turn.rack, len(turn.rack))
    steps = (
        (*melds[:place], grown, *melds[place + 1 :])
        for t in tiles[:5]
        for place, meld in enumerate(melds)
        for grown in growths(meld, t, turn.okey, one_high=ruleset.run_one_high)
    )
    return next((step for step in steps if not judge_turn(turn, step, None, ruleset).violations), None)
