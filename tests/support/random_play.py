"""Plays whole games with seeded random players, under every ruleset.

Plays come from a separate search (oracles/plain_search.py) that shares no rule with the engine, so that an engine that
rejects a legal table is detected too. Where the rules know of a play that this search does not find, the solver finds
it. Plays on a grid come from the engine's own search; the invariants judge them by an oracle.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from engine.actions import (
    AbortGame,
    Action,
    AnnounceRematch,
    Join,
    KickPlayer,
    Leave,
    RenewSeatToken,
    Resign,
    ReturnToSeat,
    SetReady,
    StandIn,
    StartDueRound,
    StartGame,
    StartNextRound,
    TimeOut,
)
from engine.deal import Shuffle
from engine.effort import Budget
from engine.events import Event
from engine.fair_deal import commitment_to
from engine.game import (
    Aborted,
    Finished,
    Game,
    Lobby,
    Playing,
    RoundOver,
)
from engine.melding.actions import ClaimError, DrawTile, Knock, LayOnRiver, Pass, PlayTiles, RequestRedeal, TurnAction
from engine.melding.analysis import (
    AnySituation,
    Existence,
    GridSituation,
    Situation,
    options_needing_analysis,
    situation_of,
)
from engine.melding.deal import start_of
from engine.melding.game import must_draw_first, round_of, rules_of
from engine.melding.grid.cells import Cell, Grid, without_faces
from engine.melding.melds import Meld
from engine.melding.position import Position
from engine.melding.round import Choosing, Drawing, Drawn, Open
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    OPTIONS,
    SABRA,
    DealThreePairsReshuffle,
    JokerKinds,
    Manipulation,
    MatchEnd,
    PoolEmptyPass,
    PoolEmptyStuckTest,
    Ruleset,
    ScoreWinner,
    TableLayout,
    Teams,
    TurnInvalidSubmission,
    TurnPlayAfterDraw,
    TurnVoluntaryDraw,
    WinCall,
    problems,
    with_options,
)
from engine.melding.scoring import may_knock
from engine.melding.solver import Exact, Objective, best_turn
from engine.melding.table import ProposedTable, count_tiles, tiles_on
from engine.options import option_problems
from engine.room_settings import SETTINGS, ClockFlag, StartBy
from engine.seats import HOST, BotLevel
from engine.tiles import JOKER, SPECIAL_JOKERS, Tile, in_order, without
from engine.timers import due_ms
from engine.turns import Applied, apply, create
from engine.violations import Refused
from oracles.brute_force import as_sent
from oracles.plain_search import ALL_FACES, NEAR, Found, Table, Tiles, search_by_chance
from support.fair_deals import fairly
from support.open_seats import random_take_over
from support.rooms import Room, Rules, parts, room
from support.tables import has_short_part, in_random_order, proposal_of, with_tiles, without_first
from support.twist_play import twist_by_chance

Check: TypeAlias = Callable[[Game, tuple[Event, ...], Action | None], None]

ANALYSIS = Exact(Budget(nodes=2_000))
"""The analysis of random games. Its budget is small, so that its answer is sometimes UNKNOWN."""

BUDGET = Budget(nodes=20_000, change_nodes=0)
"""The budget for finding a play that exists according to the rules, without its steps, which some rules need."""

GRID_BUDGET, MOST_ALIKE = Budget(nodes=2_000), 8
"""The budget for finding a play on a grid, and the number of tiles for which it mostly suffices."""

MAX_CHANGES = 20_000
"""More changes than any random game has. A game that reaches this number never ends."""

THOUGHTS_MS = (0, 1, 1000, 1000, 1000, 3000, 20_000)
"""How long random players take for an action."""

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eli", "Fay")


def random_table(
    table: Sequence[Meld], rack: Tiles, has_melded: bool, ruleset: Ruleset, rng: random.Random
) -> Table | None:
    """Returns the table after a legal play of at least one rack tile, or None if none was found."""
    found = melds_by_chance(Situation(tuple(table), rack, has_melded, ruleset), rng)
    return found.table if found else None


def random_shuffle(ruleset: Ruleset, rng: random.Random, players: int = 2) -> Shuffle:
    """Returns a random shuffle for a number of players."""
    faces = ALL_FACES[: 13 * ruleset.geometry_colors]
    special = [t for t in ruleset.tiles(players) if t in SPECIAL_JOKERS]
    tiles = [*faces * ruleset.copies(players), *[JOKER] * ruleset.jokers(players), *special]
    return Shuffle(tuple(rng.sample(tiles, len(tiles))), tuple(rng.sample(tiles, len(tiles))))


# Actions


class RandomPlayers:
    """The players of a game. In some games, some of them often let their time run out, or want to abort the game."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.slow = {seat for seat in range(1, len(NAMES) + 1) if rng.random() < 0.15}
        self.around = 0.1 if rng.random() < 0.05 else 0.006

    def action(self, game: Game) -> Action:
        """Returns an action in a running game, mostly a play or a draw of the player to move.

        A TimeOut or a StartDueRound is due only after its time, at `time_of`.
        """
        rng = self.rng
        match game.phase:
            case Playing() | RoundOver() if taking := random_take_over(game, rng):
                return taking
            case Playing():
                if rng.random() < 0.0015:
                    return Resign(rng.choice(game.active_seats))
                if rng.random() < self.around:
                    return self._around_the_game(game)
                round_ = round_of(game)
                return self._of_absent(game, self._of_others(game, round_) or self._turn(game, round_))
            case RoundOver(_, next_round_ms):
                seat = rng.choice(game.active_seats)
                if rng.random() < 0.03:
                    return Resign(seat)
                if rng.random() < 0.1:
                    return self._around_the_game(game)
                if game.player(seat).stand_in and rng.random() < 0.5:
                    return ReturnToSeat(seat)
                shuffle = random_shuffle(rules_of(game), rng, len(game.active_seats))
                is_timed = next_round_ms is not None and rng.random() < 0.5
                return StartDueRound(shuffle) if is_timed else StartNextRound(seat, shuffle)
            case Lobby() | Finished() | Aborted():
                raise ValueError("nobody can act before the start or after the end of a game")

    def _of_absent(self, game: Game, action: Action) -> Action:
        """Returns an action of a player; of an absent one mostly as their bot's, else their own or their return."""
        if not isinstance(action, TurnAction | ClaimError) or not game.player(action.seat).stand_in:
            return action
        number = self.rng.random()
        if number < 0.1:
            return ReturnToSeat(action.seat)
        return action if number < 0.2 else StandIn(action)

    def _around_the_game(self, game: Game) -> Action:
        """Returns the renewal of a token, a person's vote to abort the game, or rarely the host's call to abort it."""
        people = [player.seat for player in game.players if not (player.bot or player.resigned)]
        seat, share = self.rng.choice([*people, HOST]), self.rng.random()
        is_hosts_call = seat in (HOST, game.host_seat) and not game.results
        if is_hosts_call:
            return AbortGame(seat) if share < 0.03 else RenewSeatToken(seat)
        return RenewSeatToken(seat) if share < 0.4 or seat == HOST else AbortGame(seat)

    def _of_others(self, game: Game, round_: Round) -> Action | None:
        """Returns an action of a player whose turn it is not."""
        may_redeal = tuple(seat for seat in game.active_seats if has_right_to_redeal(round_, seat, rules_of(game)))
        if may_redeal and self.rng.random() < 0.3:
            shuffle = random_shuffle(rules_of(game), self.rng, len(game.active_seats))
            return RequestRedeal(self.rng.choice(may_redeal), shuffle)
        shown = round_.shown_play
        if shown is None or shown.against is not None:
            return None
        voters = [seat for seat in game.active_seats if seat not in (round_.turn.seat, *shown.claimed)]
        if voters and self.rng.random() < 0.7:
            return ClaimError(self.rng.choice(voters), shown.revision, self.rng.random() < 0.75)
        return None

    def _turn(self, game: Game, round_: Round) -> Action:
        """Returns an action of the player to move."""
        seat, rng, is_timed = round_.turn.seat, self.rng, round_.turn.deadline_ms is not None
        is_slow = seat in self.slow and not game.player(seat).played_by
        if is_timed and rng.random() < (0.5 if is_slow else 0.03):
            return TimeOut(None if rng.random() < 0.5 else self._draft(game, round_))
        if isinstance(round_.step, Choosing):
            return LayOnRiver(seat, rng.choice(round_.step.tiles))
        if self._knocks(game, round_):
            return Knock(seat)
        if must_draw_first(rules_of(game), type(round_.step), len(round_.pool)):
            return DrawTile(seat)
        penalised = rules_of(game).turn_invalid_submission is not TurnInvalidSubmission.REJECT
        if penalised and rng.random() < 0.03:
            return PlayTiles(seat, self._illegal_table(round_))
        found = self._found(game, round_) if rng.random() < 0.95 else None
        if found is None and self._must_play(game, round_):
            found = certain_play(self._playable(game, round_))
        if found is not None:
            return self._play(game, round_, found)
        if isinstance(round_.step, Open | Drawing) and round_.pool:
            return DrawTile(seat)
        return Pass(seat)

    def _knocks(self, game: Game, round_: Round) -> bool:
        """Returns whether the player knocks, mostly if they may."""
        begins = isinstance(round_.step, Open) and len(round_.pool) > 0
        may = not begins and may_knock(round_.rack(round_.turn.seat).tiles, rules_of(game))
        return may and self.rng.random() < 0.7

    def _playable(self, game: Game, round_: Round) -> AnySituation:
        """Returns the situation without the tile just drawn, if it may not be played."""
        situation = situation_at(game, round_)
        others_alone = rules_of(game).turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES
        if isinstance(round_.step, Drawn) and others_alone:
            return replace(situation, rack=without(situation.rack, (round_.step.tile,)))
        return situation

    def _found(self, game: Game, round_: Round) -> Found | FoundOnGrid | None:
        others_alone = rules_of(game).turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES
        drawn = round_.step.tile if isinstance(round_.step, Drawn) and others_alone else None
        return play_by_chance(situation_at(game, round_), self.rng, drawn)

    def _must_play(self, game: Game, round_: Round) -> bool:
        """Returns whether the player must play, or the round ends only when no player can."""
        ruleset, rack = rules_of(game), round_.rack(round_.turn.seat)
        after_draw = isinstance(round_.step, Drawn)
        if not round_.pool and not after_draw:
            ends_with_passes = ruleset.pool_empty_stuck_test is not PoolEmptyStuckTest.EXACT
            return ruleset.pool_empty_pass is PoolEmptyPass.ONLY_IF_NO_PLAY or not ends_with_passes
        delays = ruleset.initial_meld_voluntary_delay or rack.has_melded
        return ruleset.turn_voluntary_draw is TurnVoluntaryDraw.ONLY_IF_NO_PLAY or not delays

    def _play(self, game: Game, round_: Round, found: Found | FoundOnGrid) -> PlayTiles:
        must_call = rules_of(game).win_call is WinCall.REQUIRED and not found.left
        calls = must_call or self.rng.random() < 0.05
        knocks = found.river_index is None and self._may_knock_after(game, round_, found) and self.rng.random() < 0.7
        return PlayTiles(round_.turn.seat, found.table, found.river_index, calls, knocks)

    def _may_knock_after(self, game: Game, round_: Round, found: Found | FoundOnGrid) -> bool:
        rack = Counter(round_.rack(round_.turn.seat).tiles)
        left = rack + count_tiles(round_.table) - count_tiles(found.table)
        return may_knock(in_order(left.elements()), rules_of(game))

    def _draft(self, game: Game, round_: Round) -> ProposedTable:
        """Returns the table in another order, without a part, or after a legal play."""
        table = in_random_order(proposal_of(round_.table, states_kinds=False), self.rng)
        rack = round_.rack(round_.turn.seat).tiles
        match self.rng.randrange(3):
            case 0:
                return table
            case 1:
                return with_tiles(without_first(table), rack[:1])
            case _:
                found = play_by_chance(situation_at(game, replace(round_, river=())), self.rng)
                return found.table if found else table

    def _illegal_table(self, round_: Round) -> ProposedTable:
        """Returns a table with a meld or row that is too short, which marks an intentionally illegal play."""
        table = proposal_of(round_.table)
        rack = round_.rack(round_.turn.seat).tiles
        short = tuple(self.rng.sample(rack, min(len(rack), self.rng.randint(1, 2))))
        return with_tiles(without_first(table) if self.rng.randrange(2) else table, short)


def play_by_chance(
    situation: AnySituation, rng: random.Random, drawn: Tile | None = None
) -> Found | FoundOnGrid | None:
    """Returns a legal play found by random search, if any; never one of a tile just drawn that may not be played."""
    if isinstance(situation, GridSituation):
        return grid_by_chance(situation, rng, drawn)
    return melds_by_chance(situation, rng, drawn)


def melds_by_chance(situation: Situation, rng: random.Random, drawn: Tile | None = None) -> Found | None:
    """Returns a legal play on a table of melds found by random search, if any."""
    search = twist_by_chance if situation.ruleset.joker_kinds is JokerKinds.TWIST else search_by_chance
    return search(situation, rng, drawn)


@dataclass(frozen=True)
class FoundOnGrid:
    """A legal play on a grid: the proposed table, and the tiles left on the rack."""

    table: ProposedTable
    left: Tiles
    river_index: None = None


def grid_by_chance(situation: GridSituation, rng: random.Random, drawn: Tile | None = None) -> FoundOnGrid | None:
    """Returns a legal play on a grid that a short search finds, mostly of a few tiles that are alike.

    Where tiles may move, all of them do now and then.
    """
    hand = situation.rack if drawn is None else without(situation.rack, (drawn,))
    if len(hand) > MOST_ALIKE and rng.random() < 0.8:
        near = NEAR[rng.choice(hand)]
        alike = [t for t in hand if t in near]
        hand = in_order(rng.sample(alike, min(len(alike), MOST_ALIKE)))
    turn = best_turn(replace(situation, rack=hand), rng.choice(tuple(Objective)), GRID_BUDGET).turn
    if turn is None:
        return None
    may_move = situation.has_melded and situation.ruleset.manipulation is Manipulation.FREE
    right = rng.choice((-1, 1)) if may_move and rng.random() < 0.2 else 0
    moved = [replace(one, cell=Cell(one.cell.x + right, one.cell.y)) for one in without_faces(turn.table).placements]
    table = Grid(tuple(moved))
    sent = in_random_order(table, rng) if rng.random() < 0.3 else table
    return FoundOnGrid(sent, without(situation.rack, turn.tiles))


def certain_play(situation: AnySituation) -> Found | FoundOnGrid | None:
    """Returns a play of a player who must play if they can; None if none is found within the budget."""
    if not isinstance(situation, GridSituation):
        return solved(situation)
    if ANALYSIS.can_play(situation) is not Existence.YES:
        return None
    turn = best_turn(situation, budget=ANALYSIS.budget).turn
    assert turn, f"there is a play, and none is found in {situation}"
    return FoundOnGrid(without_faces(turn.table), without(situation.rack, turn.tiles))


def solved(situation: Situation) -> Found | None:
    """Returns the solver's play; None if it finds none within the budget."""
    if ANALYSIS.can_play(situation) is not Existence.YES:
        return None
    turn = best_turn(situation, budget=BUDGET).turn or best_turn(situation, budget=ANALYSIS.budget).turn
    assert turn, f"there is a play, and none is found in {situation}"
    pulled = () if turn.river_index is None else situation.river[turn.river_index + 1 :]
    table = tuple(as_sent(meld) for meld in turn.table)
    return Found(table, in_order(without(situation.rack, turn.tiles) + pulled), turn.river_index)


def situation_at(game: Game, round_: Round) -> AnySituation:
    """Returns the situation of the player to move."""
    rack = round_.rack(round_.turn.seat)
    return situation_of(round_.table, rack.tiles, rack.has_melded, rules_of(game), round_.river)


def has_right_to_redeal(round_: Round, seat: int, ruleset: Ruleset) -> bool:
    """Returns whether a player has three pairs in their first hand, has not acted, and no player has played."""
    tiles = round_.rack(seat).tiles
    acted = seat in round_.passed or (seat == round_.turn.seat and isinstance(round_.step, Choosing))
    pairs = sum(count // 2 for count in Counter(tiles).values())
    first = not acted and not tiles_on(round_.table) and len(tiles) == ruleset.deal_hand_size
    return ruleset.deal_three_pairs_reshuffle is DealThreePairsReshuffle.ON_REQUEST and first and pairs >= 3


def is_meant_to_be_illegal(action: Action) -> bool:
    """Returns whether an action is an intentionally illegal play."""
    action = action.action if isinstance(action, StandIn) else action
    return isinstance(action, PlayTiles) and has_short_part(action.table)


def time_of(game: Game, action: Action, now_ms: int, thought_ms: int = 1000) -> int:
    """Returns the time of an action: after the time at which it is due, otherwise `thought_ms` later or when due."""
    due = due_ms(game)
    if isinstance(action, TimeOut | StartDueRound):
        return (due or 0) + 1
    return now_ms + thought_ms if due is None else min(now_ms + thought_ms, due)


# Rulesets


def random_ruleset(rng: random.Random, *, with_analysis: bool = False) -> Ruleset:
    """Returns a ruleset without problems, mostly with few options changed from the default, sometimes with many.

    `with_analysis` allows options that need an analysis.
    """
    while True:
        count = rng.choice((0, 1, 2, 3, 4, 6, 10, 25))
        chosen = {option: rng.choice(OPTIONS[option].usual) for option in rng.sample(tuple(OPTIONS), count)}
        ruleset = _repaired(with_options(SABRA, _completed(chosen, rng)), rng)
        if not with_analysis:
            ruleset = with_options(
                ruleset, {option: getattr(SABRA, option) for option in options_needing_analysis(ruleset)}
            )
        if not problems(ruleset):
            return ruleset


RANDOM_SETTINGS = tuple(name for name in SETTINGS if name != "bots")
"""The settings of random games, in which bots always may have seats."""


def random_room(rng: random.Random, *, with_analysis: bool = False) -> Room:
    """Returns a random ruleset with settings without problems, mostly with few settings changed from the default."""
    ruleset = random_ruleset(rng, with_analysis=with_analysis)
    while True:
        count = rng.choice((0, 0, 1, 1, 2, 3, 6))
        chosen = {name: rng.choice(SETTINGS[name].usual) for name in rng.sample(RANDOM_SETTINGS, count)}
        if chosen.get("clock_increment_seconds") or chosen.get("clock_flag") is ClockFlag.TIME_OUT_EACH_TURN:
            chosen["clock_total_seconds"] = rng.choice((5, 60))
        made = room(ruleset, **chosen)
        if not any(option_problems(made.settings)):
            return made


def random_grid_room(rng: random.Random) -> Room:
    """Returns a random ruleset of the cross layout with settings, as random_room does; it may need an analysis."""
    while True:
        made, manipulation = random_room(rng, with_analysis=True), rng.choice((Manipulation.OFF, Manipulation.FREE))
        layout = {"table_layout": TableLayout.GRID, "manipulation": manipulation}
        ruleset = with_options(made.ruleset, layout)
        if not problems(ruleset):
            return replace(made, ruleset=ruleset)


def _completed(chosen: Mapping[str, Any], rng: random.Random) -> Mapping[str, Any]:
    """Returns options with the others that they require."""
    completed = dict(chosen)
    for option in ("match_rounds", "match_target_score"):
        completed.pop(option, None)
    if "players_min" in completed:
        completed["players_max"] = rng.randint(completed["players_min"], 6)
    if completed.get("teams") is Teams.PAIRS:
        completed |= {"players_min": 4, "players_max": 4}
    if completed.get("match_end") is MatchEnd.FIXED_ROUNDS:
        completed["match_rounds"] = rng.choice(OPTIONS["match_rounds"].usual)
    if completed.get("match_end") is MatchEnd.TARGET_SCORE:
        one_win = completed.get("score_winner") is ScoreWinner.ONE_WIN
        completed["match_target_score"] = 2 if one_win else rng.choice(OPTIONS["match_target_score"].usual)
    return completed


def _repaired(ruleset: Ruleset, rng: random.Random) -> Ruleset:
    """Returns a ruleset with some of the options in conflict changed, at random or to the default."""
    for _ in range(20):
        found = problems(ruleset)
        if not found:
            break
        option = rng.choice(found[0].options)
        value = rng.choice((getattr(SABRA, option), rng.choice(OPTIONS[option].usual)))
        ruleset = with_options(ruleset, {option: value})
    return ruleset


def players_of(rules: Rules, seed: int) -> int:
    """Returns the number of players in the game of a seed."""
    ruleset, _ = parts(rules)
    return ruleset.players_min + seed % (ruleset.players_max - ruleset.players_min + 1)


# Games


@dataclass(frozen=True)
class Change:
    """A change of a random game: its action (None for the creation), time, and result."""

    action: Action | None
    now_ms: int
    applied: Applied


def random_changes(
    seed: int, players: int, rules: Rules, deal_secret: bytes = b"", position: Position | None = None
) -> Iterator[Change]:
    """Yields the changes of a random game, with as many players as given or allowed.

    With a secret the deals follow from it and from seeds of the players (engine.fair_deal). With a position, which has
    its pool, the game begins with it, and has its players.
    """
    rng, (ruleset, settings) = random.Random(seed), parts(rules)
    players = min(max(players, ruleset.players_min), ruleset.players_max)
    everyone = RandomPlayers(rng)
    seats = position.seats if position else ()
    created = create(ruleset, settings, position_seats=seats, deal_commitment=commitment_to(deal_secret))
    applied, now_ms = created, 1_000_000
    yield Change(None, now_ms, applied)
    lobby = iter(_lobby_at(position, ruleset) if position else _lobby(players, applied.game, rng))
    while not isinstance(applied.game.phase, Finished | Aborted):
        action = next(lobby, None) or everyone.action(applied.game)
        if deal_secret:
            action = fairly(applied.game, action, deal_secret)
        now_ms = time_of(applied.game, action, now_ms, rng.choice(THOUGHTS_MS))
        outcome = _apply(applied.game, action, now_ms)
        if not outcome.events:
            assert outcome.game is applied.game, f"{action} changes the game without an event"
            continue
        applied = outcome
        yield Change(action, now_ms, applied)
        if applied.game.revision > MAX_CHANGES:
            raise AssertionError(f"the game has not ended after {MAX_CHANGES} changes")
    if rng.random() < 0.5:
        action = AnnounceRematch(f"{seed:032x}")
        yield Change(action, now_ms, _apply(applied.game, action, now_ms))


def play_random_game(
    seed: int, players: int, rules: Rules, check: Check = lambda _game, _events, _action: None
) -> tuple[tuple[Event, ...], ...]:
    """Plays a random game, calls `check` with the game, events and action of each change, and returns all events."""
    history = []
    for change in random_changes(seed, players, rules):
        check(change.applied.game, change.applied.events, change.action)
        history.append(change.applied.events)
    return tuple(history)


def _lobby(players: int, game: Game, rng: random.Random) -> tuple[Action, ...]:
    """Returns the actions of the lobby: players and bots join, some go or change their mind, and the game starts."""
    has_bots = rng.random() < 0.25
    actions: list[Action] = [Join(NAMES[0], seat=1, is_host=True)]
    levels = [_level(rng, has_bots) for _ in NAMES[1:players]]
    joining = zip(range(2, players + 1), NAMES[1:players], levels, strict=True)
    actions += (Join(name, bot, seat, is_program=seat == 3 and not bot) for seat, name, bot in joining)
    rng.shuffle(actions)
    if rng.random() < 0.6:
        seat = 1 if rng.random() < 0.5 else rng.randint(1, players)
        actions += (Leave(seat) if rng.random() < 0.5 else KickPlayer(HOST, seat), Join("Zoe"))
    if rng.random() < 0.1:
        actions.append(RenewSeatToken(rng.randint(HOST, players)))
    people = [action.seat for action in actions if isinstance(action, Join) and action.seat and not action.bot]
    if rng.random() < 0.2:
        actions += (SetReady(rng.choice(people), is_ready=rng.random() < 0.5) for _ in range(3))
    ruleset, start_by = rules_of(game), game.settings.start_by
    shuffle = random_shuffle(ruleset, rng, players)
    if rng.random() < 0.01:
        return (*actions, AbortGame(HOST))
    if start_by is StartBy.FULL_OR_READY and players == ruleset.players_max and rng.random() < 0.5:
        return (*actions, StartDueRound(shuffle))
    if start_by in {StartBy.ALL_READY, StartBy.FULL_OR_READY}:
        actions += (SetReady(seat, is_ready=True) for seat in range(1, players + 1))
    return (*actions, StartGame(HOST if start_by is StartBy.HOST else rng.randint(1, players), shuffle))


def _lobby_at(position: Position, ruleset: Ruleset) -> tuple[Action, ...]:
    """Returns the actions of the lobby of a game that begins with a position."""
    joins = (Join(name, seat=seat, is_host=name is NAMES[0]) for name, seat in zip(NAMES, position.seats, strict=False))
    return (*joins, StartGame(HOST, start_of(position, ruleset, ())))


def position_in(game: Game) -> Position:
    """Returns the position in a game, with the pool in its order."""
    round_ = round_of(game)
    return Position(round_.table, round_.racks, round_.pool, round_.turn.seat)


def _level(rng: random.Random, has_bots: bool) -> BotLevel | None:
    return rng.choice((None, *BotLevel)) if has_bots else None


def _apply(game: Game, action: Action, now_ms: int) -> Applied:
    applied = apply(game, action, now_ms, ANALYSIS)
    violations = applied.violations
    if isinstance(applied, Refused) or (violations and not is_meant_to_be_illegal(action)):
        raise AssertionError(f"{action} was refused: {violations} in {game}")
    assert bool(violations) == is_meant_to_be_illegal(action), f"{action} is illegal and was accepted"
    return applied
