"""Checks the invariants of every state of every game. A violated invariant raises AssertionError.

`Invariants` checks one game change by change. Nothing here uses the engine's reading of melds or its turn order: the
expected values are computed independently.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

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
    TakeOverSeat,
    TimeOut,
)
from engine.deal import Shuffle
from engine.events import (
    AbortRequested,
    ClockStopped,
    Event,
    GameAborted,
    GameEnded,
    PlayerAbsent,
    PlayerResigned,
    PlayerReturned,
    RematchCreated,
    RoundEnded,
    SeatTakenOver,
    TurnStarted,
    TurnTimedOut,
)
from engine.game import (
    Aborted,
    Finished,
    Game,
    Lobby,
    Playing,
    RoundEnd,
    RoundOver,
    RoundResult,
)
from engine.melding.actions import ClaimError, DrawTile, LayOnRiver, Pass, PlayTiles, RequestRedeal
from engine.melding.drafts import Draft
from engine.melding.events import (
    ErrorClaimed,
    IllegalPlayShown,
    LastChanceStarted,
    PlayerKnocked,
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
from engine.melding.game import round_of, rules_of
from engine.melding.grid.cells import Cell, Grid, Placement
from engine.melding.melds import Meld, MeldKind
from engine.melding.round import Choosing, Drawing, Drawn, Open, Step
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import (
    Contract,
    InitialMeldComparison,
    InitialMeldCount,
    InitialMeldJoker,
    InitialMeldRequiredKind,
    InitialMeldSameTurnTablePlay,
    JokerKinds,
    Manipulation,
    PoolEmptyLastChanceStart,
    PoolEmptyMode,
    PoolEmptyStuckTest,
    Ruleset,
    ScoreBlockedPoints,
    ScoreNeverMelded,
    ScoreWinner,
    StartDrawDetermines,
    TableLayout,
    Teams,
    TurnDirection,
    TurnDraw,
    TurnPlayAfterDraw,
    TurnTimeoutClean,
    TurnTimeoutDirty,
    WinCall,
)
from engine.melding.run_shape import run_shape
from engine.melding.table import Melds, ProposedTable, Table, melds_of, tiles_on
from engine.melding.turns import arrange
from engine.replay import replay
from engine.room_settings import AbsentAction, ClockFlag, RacksShown, StartBy
from engine.seats import HOST, BotLevel, Rack
from engine.sight import see, see_event, sees_drafts
from engine.tiles import JOKER, JOKERS, Tile
from engine.turns import Applied, apply, create_rematch
from engine.violations import Refused
from oracles import twist_melds
from oracles.scores import expected_result, expected_winners, number_of, worth
from support.grid_invariants import check_grid, check_play_on_grid
from support.random_play import (
    ANALYSIS,
    has_right_to_redeal,
    players_of,
    random_changes,
    random_grid_room,
    random_room,
    random_shuffle,
)
from support.records import check_record
from support.rooms import Rules
from support.tables import proposal_of, with_tiles, without_first
from support.twist_play import options_of

HIDDEN_EVERY = 9
"""The interval, in changes, of comparing views with those of a game with other hidden tiles."""

REFUSALS_EVERY = 7
"""The interval, in changes, of trying illegal actions and drafts."""

RECORD_EVERY = 10
"""The interval, in games, of playing records again."""

GRID_EVERY = 7
"""The interval, in games by random rules, of those of the cross layout."""

FULLEST_MS = 14 * 24 * 3600 * 1000
"""Most time in a bank."""


class Invariants:
    """Checks one game. Call it with the game after each change, and with the change's events and action."""

    def __init__(self, *, thorough: bool = False) -> None:
        self.thorough = thorough
        self.before: Game | None = None
        self.history: list[tuple[Event, ...]] = []
        self.measure: tuple[int, ...] = ()
        self.last_turns: list[int] | None = None
        self.timeouts: Counter[int] = Counter()
        self.absent: dict[int, BotLevel] = {}
        self.banks: dict[int, int] = {}

    def __call__(self, game: Game, events: tuple[Event, ...], action: Action | None = None) -> None:
        before, self.before = self.before, game
        self.history.append(events)
        assert events, "a change has events"
        assert game.revision == len(self.history), f"revision {game.revision} after {len(self.history)} changes"
        if self.thorough or isinstance(game.phase, Finished | Aborted):
            assert replay(self.history) == game, "the history replayed is not the game"
        check_results(game, events)
        check_host(before, game)
        check_abort(before, game, events)
        check_votes(before, game, events)
        check_end_of_game(before, game, events)
        self.check_returns(events, action)
        self.check_absence(game, events)
        self.check_clocks(before, game, events)
        if self.thorough or game.revision % REFUSALS_EVERY == 0:
            check_refusals(game)
            check_drafts(game)
        if self.thorough or game.revision % HIDDEN_EVERY == 0 or isinstance(game.phase, RoundOver | Finished | Aborted):
            check_views(game, events)
        if game.round is None:
            return
        round_ = round_of(game)
        check_tiles(round_, rules_of(game))
        check_table(round_.table, rules_of(game))
        started = next((event for event in events if isinstance(event, RoundStarted)), None)
        if started:
            check_deal(before, game, started)
            self.last_turns = None
        elif before is not None and before.round is not None:
            check_change(before, game, events, action.draft if isinstance(action, TimeOut) else None)
            check_turn(before, round_of(before), game, events)
        self.check_end_in_sight(game, round_, events)
        self.check_last_turns(before, game, events)

    def check_end_in_sight(self, game: Game, round_: Round, events: tuple[Event, ...]) -> None:
        """Checks that a bounded measure decreases from turn to turn, so that a round ends."""
        if any(isinstance(event, SeatTakenOver) for event in events):
            self.measure = (len(game.players) + 1,)
        if not any(isinstance(event, TurnStarted) for event in events):
            return
        before, off_table = self.measure, sum(len(rack.tiles) for rack in round_.racks)
        to_pass = len(set(game.active_seats) - set(round_.passed))
        tiles = off_table + len(round_.pool) + len(round_.river), len(round_.pool)
        self.measure = (len(game.active_seats), *tiles, to_pass, len(round_.last_chance or ()))
        first = next(event for event in events if not isinstance(event, PlayerReturned))
        if isinstance(events[-2], RoundStarted) or may_go_on_for_ever(rules_of(game), round_, first):
            return
        assert self.measure < before, f"nothing has come nearer to an end: {before}, {self.measure}"

    def check_returns(self, events: tuple[Event, ...], action: Action | None) -> None:
        """Checks that an absent player who acts has returned."""
        match action:
            case (
                None | Join() | TimeOut() | StartDueRound() | StandIn() | Resign() | TakeOverSeat() | AnnounceRematch()
            ):
                return
            case _:
                has_returned = action.seat not in self.absent or PlayerReturned(action.seat) in events
                assert has_returned, f"seat {action.seat} acts and stays absent"

    def check_absence(self, game: Game, events: tuple[Event, ...]) -> None:
        """Checks who is absent: whose turns timed out so often in a row, until they return or resign."""
        settings, self.timeouts, self.absent = game.settings, Counter(self.timeouts), dict(self.absent)
        for event in events:
            match event:
                case TurnTimedOut(seat):
                    self.timeouts[seat] += self.banks.get(seat) != 0
                case PlayerAbsent(seat, level):
                    assert seat not in self.absent, f"seat {seat} became absent twice"
                    assert 0 < settings.absent_after_timeouts <= self.timeouts[seat], f"seat {seat} is not absent"
                    assert (level.name if level else "") in settings.absent_action.name, "another bot stands in"
                    assert level or PlayerResigned(seat) in events, f"seat {seat} was to resign"
                    self.absent |= {seat: level} if level else {}
                case PlayerReturned(seat):
                    assert self.absent.pop(seat, None), f"seat {seat} was not absent"
                    self.timeouts[seat] = 0
                case PlayerResigned(seat):
                    self.absent.pop(seat, None)
                case SeatTakenOver(seat):
                    self.timeouts[seat] = 0
                case (
                    TilesPlayed(seat=seat)
                    | TileDrawn(seat=seat)
                    | TilesDrawn(seat=seat)
                    | TilesOffered(seat=seat)
                    | TurnEnded(seat=seat)
                    | TurnPassed(seat=seat)
                    | TurnPenalised(seat=seat)
                    | IllegalPlayShown(seat=seat)
                ):
                    self.timeouts[seat] = 0
                case _:
                    pass
        assert {p.seat: p.stand_in for p in game.players if p.stand_in} == self.absent, "others are absent"
        assert all(p.timeouts_in_a_row == self.timeouts[p.seat] for p in game.players), "time-outs are miscounted"
        if settings.absent_after_timeouts and settings.absent_action is not AbsentAction.OFF:
            late = [seat for seat in people(game) if self.timeouts[seat] >= settings.absent_after_timeouts]
            assert set(late) <= set(self.absent), f"seats {late} are absent and nothing follows"
        check_abandoned(game, self.absent)

    def check_clocks(self, before: Game | None, game: Game, events: tuple[Event, ...]) -> None:
        """Checks the banks of time, and each deadline: the turn's limit or the bank, whichever is less."""
        settings, self.banks = game.settings, dict(self.banks)
        limit = settings.turn_time_limit_seconds * 1000
        turn = before.phase.round.turn if before and isinstance(before.phase, Playing) else None
        lengths = {seat: min(bank, limit or bank) for seat, bank in self.banks.items()}
        starts = [event.turn for event in events if isinstance(event, TurnStarted)]
        for event in events:
            match event:
                case RoundStarted() if settings.clock_total_seconds:
                    self.banks = {player.seat: settings.clock_total_seconds * 1000 for player in game.players}
                case SeatTakenOver(seat) if settings.clock_total_seconds:
                    self.banks[seat] = settings.clock_total_seconds * 1000
                case ClockStopped(seat, left):
                    assert turn, "a clock stopped that did not run"
                    assert seat == turn.seat, f"the clock of seat {seat} stopped in the turn of seat {turn.seat}"
                    bank, increment = self.banks[seat], settings.clock_increment_seconds * 1000
                    most, least = (min(bank - used + increment, FULLEST_MS) for used in (0, lengths[seat]))
                    assert least <= left <= most, f"seat {seat} has {left} ms left of {bank}"
                    self.banks[seat] = left
                    for start in starts:
                        assert start.deadline_ms is not None, "a turn without a deadline"
                        assert turn.deadline_ms is not None, "a turn without a deadline"
                        now = start.deadline_ms - min(self.banks[start.seat], limit or self.banks[start.seat])
                        took = now - (turn.deadline_ms - lengths[seat])
                        counted = min(bank - min(took, lengths[seat]) + increment, FULLEST_MS)
                        assert left == counted, f"{left} ms are left of {bank} ms after {took} ms"
                case TurnTimedOut(seat) if settings.clock_flag is ClockFlag.RESIGN and seat in lengths:
                    is_empty = self.banks[seat] == lengths[seat]
                    assert not is_empty or PlayerResigned(seat) in events, f"the bank of seat {seat} is empty"
                case _:
                    pass
        assert {p.seat: p.time_left_ms for p in game.players if p.time_left_ms is not None} == self.banks, "other banks"
        is_next_turn = starts and not any(isinstance(event, RoundStarted | PlayerResigned) for event in events)
        if turn and self.banks and is_next_turn:
            assert any(isinstance(event, ClockStopped) for event in events), f"the clock of seat {turn.seat} goes on"

    def check_last_turns(self, before: Game | None, game: Game, events: tuple[Event, ...]) -> None:
        """Checks ONE_LAST_CHANCE: each player who has not resigned has exactly one turn, then the round ends."""
        for event in events:
            match event:
                case LastChanceStarted(seats):
                    assert self.last_turns is None, "the last turns began twice"
                    assert before is not None, "the last turns of no round"
                    assert seats == last_turns(before, game), "the last turns are not everyone's"
                    self.last_turns = list(seats)
                case SeatTakenOver(taken) if self.last_turns is not None:
                    self.last_turns = [seat for seat in self.last_turns if seat != taken]
                case TurnStarted(turn) if self.last_turns is not None:
                    while self.last_turns and self.last_turns[0] not in (*game.active_seats, turn.seat):
                        del self.last_turns[0]
                    assert self.last_turns[:1] == [turn.seat], f"seat {turn.seat} has a turn beyond the last one"
                    del self.last_turns[0]
                case RoundEnded(result) if rules_of(game).pool_empty_mode is PoolEmptyMode.ONE_LAST_CHANCE:
                    left = set(self.last_turns or ()) & set(game.active_seats)
                    over = self.last_turns is not None and not left
                    assert over or result.end is not RoundEnd.BLOCKED, f"no last turn for {left}"
                case _:
                    pass


def people(game: Game) -> set[int]:
    """Returns the seats of the people who have not resigned."""
    return {player.seat for player in game.players if not (player.bot or player.resigned)}


def sides(game: Game) -> set[int]:
    """Returns the sides that are left: pairs or seats."""
    return {seat % 2 if rules_of(game).teams is Teams.PAIRS else seat for seat in game.active_seats}


def check_abandoned(game: Game, absent: Mapping[int, BotLevel]) -> None:
    """Checks that a game of several sides ends as abandoned exactly when all people are absent."""
    all_are_absent = bool(people(game)) and people(game) <= set(absent)
    is_abandoned = isinstance(game.phase, Finished) and game.phase.abandoned
    assert is_abandoned == (all_are_absent and len(sides(game)) > 1), "the game goes on without people, or ended early"
    assert set(absent) <= people(game), "a bot or a player who has resigned is absent"


def check_host(before: Game | None, game: Game) -> None:
    """Checks that one player at most is the host, and that a person follows a host who leaves."""
    assert sum(player.is_host for player in game.players) <= 1, "there are two hosts"
    had_one = before is not None and before.host_seat is not None
    assert not had_one or game.host_seat is not None or all(p.bot for p in game.players), "the host is gone"
    assert all(player.is_ready for player in game.players if player.bot), "a bot is not ready"


def check_abort(before: Game | None, game: Game, events: tuple[Event, ...]) -> None:
    """Checks that an aborted game stays as it was, and that either the host or all people have aborted it."""
    aborted = next((event for event in events if isinstance(event, GameAborted)), None)
    assert (aborted is not None) == (isinstance(game.phase, Aborted) and not game.rematch_game_id), "not aborted"
    if aborted is None:
        return
    assert before is not None, "no game was aborted"
    assert (game.round, game.results) == (before.round, before.results), "aborting changed the round or the score"
    present = [player for player in game.players if player.seat in people(game) and not player.stand_in]
    assert aborted.by_host or all(player.wants_abort for player in present), "not all people wanted to abort the game"
    assert not (aborted.by_host and game.results), "the host aborted the game after a round"


def check_votes(before: Game | None, game: Game, events: tuple[Event, ...]) -> None:
    """Checks that a vote to abort the game lasts until the end of the round, and that nothing else is a vote."""
    voted = {player.seat for player in before.players if player.wants_abort} if before else set()
    for event in events:
        match event:
            case AbortRequested(seat):
                voted.add(seat)
            case RoundEnded():
                voted.clear()
            case SeatTakenOver(seat):
                voted.discard(seat)
            case _:
                pass
    assert {player.seat for player in game.players if player.wants_abort} == voted, "others want to abort the game"


def check_end_of_game(before: Game | None, game: Game, events: tuple[Event, ...]) -> None:
    """Checks that a game that is over changes only by the announcement of its rematch, with the same seats."""
    if before is None or not isinstance(before.phase, Finished | Aborted):
        assert not game.rematch_game_id, "a game that is not over has a rematch"
        return
    assert isinstance(game.phase, Finished | Aborted), "a game that is over goes on"
    assert events == (RematchCreated(game.rematch_game_id),), "a game that is over changed"
    assert not before.rematch_game_id, "a game has two rematches"
    unchanged = replace(game, revision=before.revision, phase=replace(game.phase, rematch_game_id=""))
    assert unchanged == before, "the announcement of a rematch changed the game"
    rematch = create_rematch(game).game
    bots = [(player.seat, player.name, player.bot) for player in game.players if player.bot]
    people = [(player.seat, player.name) for player in game.players if not player.bot]
    assert [(player.seat, player.name, player.bot) for player in rematch.players] == bots, "other bots"
    assert [(one.seat, one.name) for one in rematch.reserved] == people, "other seats are reserved"
    assert rematch.host_seat is None, "the rematch has a host whom nobody has seen"
    assert rematch.ruleset == rules_of(game), "the rematch has other rules"


def last_turns(before: Game, game: Game) -> tuple[int, ...]:
    """Returns the players who have not resigned, from the one with the turn on, or from the next one on."""
    assert isinstance(before.phase, Playing), "no round is played"
    round_ = before.phase.round
    place = round_.order.index(round_.turn.seat)
    if rules_of(game).pool_empty_last_chance_start is PoolEmptyLastChanceStart.NEXT_PLAYER_FIRST:
        place += 1
    return tuple(seat for seat in round_.order[place:] + round_.order[:place] if seat in game.active_seats)


def may_go_on_for_ever(ruleset: Ruleset, round_: Round, event: Event) -> bool:
    """Returns whether a turn need not make progress: no draw from a pool with tiles, or a pass that does not count."""
    if isinstance(event, TurnTimedOut) and not event.tiles and round_.pool:
        return True
    waits = ruleset.pool_empty_mode is PoolEmptyMode.CONTINUE_UNTIL_STUCK
    return waits and ruleset.pool_empty_stuck_test is PoolEmptyStuckTest.EXACT and not round_.pool


def play_checked_game(
    seed: int, rules: Rules | None = None, *, thorough: bool = False
) -> tuple[tuple[Event, ...], ...]:
    """Plays a random game and checks all invariants, and for one game in ten its record.

    The seed determines the number of players, and the ruleset unless it is given."""
    rng = random.Random(seed)
    if rules is None:
        rules = random_grid_room(rng) if seed % GRID_EVERY == 3 else random_room(rng, with_analysis=True)
    invariants, changes = Invariants(thorough=thorough), []
    try:
        for change in random_changes(seed, players_of(rules, seed), rules):
            invariants(change.applied.game, change.applied.events, change.action)
            changes.append(change)
        if thorough or seed % RECORD_EVERY == 0:
            check_record(changes)
    except Exception as error:
        error.add_note(f"in the random game of seed {seed}")
        raise
    return tuple(change.applied.events for change in changes)


def check_tiles(round_: Round, ruleset: Ruleset) -> None:
    """Checks that racks, table, pool, River and offered tiles are exactly the tile set (R1)."""
    tiles = Counter((*round_.pool, *round_.river))
    if isinstance(round_.step, Choosing):
        tiles.update(round_.step.tiles)
    for rack in round_.racks:
        tiles.update(rack.tiles)
        assert list(rack.tiles) == sorted(rack.tiles), f"the rack of seat {rack.seat} is out of order"
    tiles.update(tiles_on(round_.table))
    is_reduced = len(round_.racks) <= ruleset.geometry_reduced_players
    expected = Counter(dict.fromkeys(faces(ruleset.geometry_colors), ruleset.geometry_copies - is_reduced))
    for joker in twist_melds.JOKERS if ruleset.joker_kinds is JokerKinds.TWIST else (JOKER,):
        expected[joker] = ruleset.geometry_jokers + ruleset.geometry_jokers_per_player * len(round_.racks)
        if is_reduced:
            expected[joker] -= expected[joker] // 2
    assert tiles == expected, f"tiles lost: {expected - tiles}, tiles gained: {tiles - expected}"
    assert tuple(sorted(expected.elements())) == round_.tiles, "the tiles of the round are not the tile set"


@cache
def faces(colors: int) -> tuple[Tile, ...]:
    """Returns the numbered tiles. 53 is the joker; the fifth color follows it."""
    return tuple(Tile(number) for number in range(1, colors * 13 + 1 + (colors > 4)) if number != JOKER)


def check_table(table: Table, ruleset: Ruleset) -> None:
    """Checks the layout of the table, and its melds or its lines."""
    assert isinstance(table, Grid) == (ruleset.table_layout is TableLayout.GRID), "the table has another layout"
    if isinstance(table, Grid):
        check_grid(table, ruleset)
    else:
        check_melds(table, ruleset)


def check_melds(melds: Melds, ruleset: Ruleset) -> None:
    """Checks that every meld is valid, with its kind, its points (R18) and the possible faces of its jokers."""
    for meld in melds:
        reading = reading_of(meld, ruleset)
        assert reading is not None, f"{meld} is no {meld.kind.name}"
        points, joker_faces = reading
        assert points == meld.points, f"{meld} has {points} points"
        assert len(meld.joker_faces) == len(joker_faces), f"{meld} has jokers without faces"
        assert all(map(may_stand_for, meld.joker_faces, joker_faces)), f"{meld} has jokers of other faces"


def may_stand_for(told: tuple[Tile, ...], possible: tuple[Tile, ...]) -> bool:
    """Returns whether a joker's faces are all possible ones, or a declared one of them."""
    return told == possible or (len(told) == 1 and told[0] in possible)


Reading = tuple[int, tuple[tuple[Tile, ...], ...]]
"""The points of a meld, and the possible faces of each joker."""


def reading_of(meld: Meld, ruleset: Ruleset) -> Reading | None:
    """Returns what a meld's tiles form, as the kind that the meld has."""
    if ruleset.joker_kinds is JokerKinds.STANDARD:
        return kinds(meld.tiles, run_shape(ruleset).last, ruleset.geometry_colors).get(meld.kind)
    found = twist_melds.readings(meld.tiles, options_of(ruleset)).get(meld.kind.name)
    return (found.points, found.faces) if found else None


@cache
def kinds(tiles: tuple[Tile, ...], highest: int, colors: int) -> Mapping[MeldKind, Reading]:
    """Returns the melds that tiles form, by trying every run and every group of their number (R11 to R20)."""
    found: dict[MeldKind, Reading] = {}
    count, jokers = len(tiles), tiles.count(JOKER)
    if count < 3 or jokers == count:
        return found
    for color in range(colors):
        of_color = faces(colors)[color * 13 : color * 13 + 13]
        for first in range(min(13, highest - count + 1) if count <= 13 else 0):
            run = [of_color[(first + place) % 13] for place in range(count)]
            if all(t in (JOKER, there) for t, there in zip(tiles, run, strict=True)):
                points = sum((first + place) % 13 + 1 for place in range(count))
                found[MeldKind.RUN] = points, tuple((run[p],) for p, t in enumerate(tiles) if t == JOKER)
    naturals = {t for t in tiles if t != JOKER}
    for value in range(1, 14):
        group = faces(colors)[value - 1 :: 13]
        if count <= colors and naturals <= set(group) and len(naturals) + jokers == count:
            found[MeldKind.GROUP] = value * count, (tuple(t for t in group if t not in naturals),) * jokers
    return found


def check_deal(before: Game | None, game: Game, event: RoundStarted) -> None:
    """Checks that all players who have not resigned are dealt in, in turn order, with full racks (R5 to R10)."""
    assert before is not None, "a round of no game"
    assert isinstance(game.phase, Playing), "the round that was dealt is not played"
    ruleset, round_, seats = rules_of(game), round_of(game), before.active_seats
    again = isinstance(before.phase, Playing)
    assert event.number == len(game.results) + 1 == (len(before.results) + 1), "the round has another number"
    assert tuple(rack.seat for rack in round_.racks) == seats, "others were dealt in"
    assert all(len(rack.tiles) == ruleset.deal_hand_size for rack in round_.racks), "a rack has another size"
    assert all(rack.tiles.count(JOKER) >= ruleset.deal_fixed_jokers for rack in round_.racks), "a joker is not dealt"
    assert sorted(round_.order) == list(seats), "the order of turns is not of those dealt in"
    if ruleset.start_draw_determines is StartDrawDetermines.STARTER_ONLY:
        clockwise = ruleset.turn_direction is TurnDirection.CLOCKWISE
        around = seats if clockwise else seats[::-1]
        place = around.index(round_.order[0])
        assert round_.order == around[place:] + around[:place], "turns do not pass around the table"
    clean = replace(round_, order=round_.order, turn=round_.turn, racks=round_.racks, pool=round_.pool)
    assert (tiles_on(clean.table), clean.river, clean.passed, clean.shown_play) == ((), (), (), None), "leftovers"
    assert round_.turn.seat == round_.order[0], "another than the starter has the first turn"
    assert round_.turn.revision == game.revision, "the first turn has another revision than the change that started it"
    if again:
        assert isinstance(before.phase, Playing), "no round is played"
        redealt = [s for s in seats if has_right_to_redeal(round_of(before), s, ruleset)]
        assert redealt, "a round was dealt anew and nobody had the right"


@dataclass
class Ledger:
    """Tracks the tiles of a round event by event."""

    racks: dict[int, Rack]
    pool: tuple[Tile, ...]
    river: tuple[Tile, ...]
    table: Table
    step: Step

    def begin_draw(self) -> None:
        """Records a draw, of which a turn has at most one unless the step allows another."""
        assert isinstance(self.step, Open | Drawing), "a second draw in a turn"

    def take(self, seat: int, tiles: tuple[Tile, ...]) -> None:
        """Moves the next tiles of the pool to a rack."""
        assert tiles == self.pool[: len(tiles)], "other tiles than the next were drawn"
        self.pool = self.pool[len(tiles) :]
        self.put(seat, tiles)

    def put(self, seat: int, tiles: tuple[Tile, ...]) -> None:
        """Adds tiles to a rack."""
        rack = self.racks[seat]
        self.racks[seat] = replace(rack, tiles=tuple(sorted(rack.tiles + tiles)))


def check_change(before: Game, after: Game, events: tuple[Event, ...], draft: ProposedTable | None) -> None:
    """Checks that each event has exactly its effect on racks, pool, River and table."""
    assert before.round is not None, "no round has begun"
    assert after.round is not None, "the round is gone"
    old, new = round_of(before), round_of(after)
    ledger = Ledger({rack.seat: rack for rack in old.racks}, old.pool, old.river, old.table, old.step)
    for event in events:
        check_actor(before, old, event)
        enter(ledger, event, before, draft)
    assert new.table == ledger.table, "the table changed otherwise than played"
    assert new.pool == ledger.pool, "the pool changed otherwise than drawn"
    assert new.river == ledger.river, "the River changed otherwise than laid or pulled"
    assert new.racks == tuple(ledger.racks.values()), "a rack changed otherwise than by the action"
    if isinstance(after.phase, Playing):
        assert new.step == ledger.step, "the turn stands otherwise than by the action"


def check_actor(before: Game, round_: Round, event: Event) -> None:
    """Checks that events of a turn belong to its player (R28). Others only vote or resign."""
    match event:
        case (
            TilesPlayed(seat=seat)
            | TileDrawn(seat=seat)
            | TilesDrawn(seat=seat)
            | TilesOffered(seat=seat)
            | RiverTileLaid(seat=seat)
            | TurnEnded(seat=seat)
            | TurnPassed(seat=seat)
            | TurnTimedOut(seat=seat)
            | TurnPenalised(seat=seat)
            | IllegalPlayShown(seat=seat)
        ):
            assert seat == round_.turn.seat, f"{event} in the turn of seat {round_.turn.seat}"
        case ErrorClaimed(seat=seat):
            assert seat in before.active_seats, f"{event}: the seat has resigned"
            assert seat != round_.turn.seat, f"{event} on the player's own play"
        case PlayerResigned(seat=seat):
            assert seat in before.active_seats, f"{event}: the seat has resigned before"
        case SeatTakenOver(seat=seat):
            assert seat not in before.active_seats, f"{event}: the player has not resigned"
            assert seat in round_.order or isinstance(before.phase, RoundOver), f"{event}: the seat has no rack"
        case _:
            pass
    if getattr(event, "declined", False):
        assert rules_of(before).score_never_melded is ScoreNeverMelded.FLAT_100_OR_200, f"{event}: nobody asks for that"
        assert not round_.rack(round_.turn.seat).has_melded, f"{event}: the player has melded"


def check_knock(left: tuple[Tile, ...], ruleset: Ruleset) -> None:
    """Checks that a player may knock with the tiles left (knock_limit)."""
    assert left, "a player without tiles knocked"
    assert sum(worth(t, ruleset) for t in left) <= ruleset.knock_limit, "a player knocked with too much"


def enter(  # noqa: C901 - one case an event
    ledger: Ledger, event: Event, before: Game, draft: ProposedTable | None
) -> None:
    """Applies an event to the tiles. `draft` is that of a time-out."""
    old, ruleset, settings = round_of(before), rules_of(before), before.settings
    match event:
        case TilesPlayed(seat, tiles, table, _, pulled):
            check_play(old, ledger.racks[seat], event, ruleset)
            ledger.put(seat, pulled)
            left = tuple(sorted((Counter(ledger.racks[seat].tiles) - Counter(tiles)).elements()))
            ledger.racks[seat] = Rack(seat, left, has_melded=True)
            ledger.river = ledger.river[: len(ledger.river) - len(pulled)]
            ledger.table = table
        case TileDrawn(seat, tile):
            enter_draw(ledger, seat, tile, ruleset)
        case TilesDrawn(seat, tiles):
            assert ruleset.turn_draw is TurnDraw.UNTIL_PLAYABLE, "several tiles were drawn"
            ledger.begin_draw()
            ledger.take(seat, tiles)
            if ruleset.turn_play_after_draw is not TurnPlayAfterDraw.FORBIDDEN:
                ledger.step = Drawn(tiles[-1])
        case TilesOffered(_, tiles):
            ledger.begin_draw()
            assert tiles == ledger.pool[:2], "other tiles than the next were drawn"
            ledger.pool, ledger.step = ledger.pool[2:], Choosing(tiles)
        case RiverTileLaid(seat, tile):
            assert isinstance(ledger.step, Choosing), "a tile was laid on the River and there was no choice"
            kept = Counter(ledger.step.tiles) - Counter([tile])
            ledger.put(seat, tuple(kept.elements()))
            ledger.river += (tile,)
            ledger.step = Open()
        case TurnTimedOut(seat, tiles):
            expected = {0} if isinstance(ledger.step, Choosing) else tiles_of_time_out(old, draft, ruleset)
            expected |= {0} if settings.clock_flag is ClockFlag.RESIGN and settings.clock_total_seconds else set()
            assert len(tiles) in expected, f"{len(tiles)} tiles for a time-out"
            ledger.take(seat, tiles)
        case TurnPenalised(seat, tiles):
            assert len(tiles) == min(ruleset.penalty_tiles, len(ledger.pool)), "another penalty"
            ledger.take(seat, tiles)
        case PlayerKnocked(seat):
            check_knock(ledger.racks[seat].tiles, ruleset)
        case TurnPassed():
            assert not ledger.pool, "someone passed though the pool has tiles"
        case TurnEnded():
            has_drawn = isinstance(ledger.step, Drawn) or (isinstance(ledger.step, Drawing) and not ledger.pool)
            assert has_drawn, "a turn ended without a draw"
        case TurnStarted():
            ledger.step = Open()
        case PlayerResigned(seat) if seat == old.turn.seat and isinstance(ledger.step, Choosing):
            ledger.put(seat, ledger.step.tiles)
            ledger.step = Open()
        case _:
            pass


def enter_draw(ledger: Ledger, seat: int, tile: Tile, ruleset: Ruleset) -> None:
    """Applies a draw of one tile to the tiles and the step."""
    drawn = (*ledger.step.tiles, tile) if isinstance(ledger.step, Drawing) else (tile,)
    most = {TurnDraw.ONE_OR_TWO: 2, TurnDraw.ONE_TO_THREE: 3}.get(ruleset.turn_draw, 1)
    assert len(drawn) <= most, "a tile too many was drawn"
    ledger.begin_draw()
    ledger.take(seat, (tile,))
    if ruleset.turn_play_after_draw is not TurnPlayAfterDraw.FORBIDDEN:
        ledger.step = Drawing(drawn) if len(drawn) < most else Drawn(tile)


def tiles_of_time_out(round_: Round, draft: ProposedTable | None, ruleset: Ruleset) -> set[int]:
    """Returns the possible numbers of tiles that a time-out costs, including 0 if a draft may be committed."""
    pool = len(round_.pool)
    is_as_before = draft is None or parts_of(draft) == parts_of(round_.table)
    if is_as_before and round_.shown_play is None:
        clean = {TurnTimeoutClean.DRAW_ONE: 1, TurnTimeoutClean.DRAW_PENALTY: ruleset.penalty_tiles}
        after_draw = isinstance(round_.step, Drawn | Drawing)
        return {0 if after_draw else min(pool, clean.get(ruleset.turn_timeout_clean, 0))}
    one = ruleset.turn_timeout_dirty is TurnTimeoutDirty.REVERT_AND_DRAW_ONE
    commits = ruleset.turn_timeout_dirty is TurnTimeoutDirty.COMMIT_IF_VALID_ELSE_REVERT and draft is not None
    return {min(pool, 1 if one else ruleset.penalty_tiles), *([0] if commits else [])}


def parts_of(table: Table | ProposedTable) -> Counter[object]:
    """Returns the melds of a table, or its tiles with their cells; their order does not matter."""
    if isinstance(table, Grid):
        return Counter((placement.cell, placement.tile) for placement in table.placements)
    return Counter(tuple(sorted(meld.tiles)) for meld in table if meld.tiles)


def check_play(before: Round, rack: Rack, play: TilesPlayed, ruleset: Ruleset) -> None:
    """Checks that a play takes tiles from the rack, none from the table (R38, R45), and is legal in its layout."""
    old, new = Counter(tiles_on(before.table)), Counter(tiles_on(play.table))
    played = Counter(play.tiles)
    assert play.tiles, "a play has no tile"
    assert not old - new, f"tiles left the table: {old - new}"
    assert new - old == played, "the tiles played are not those that are new on the table"
    check_pull(before, rack, play)
    one_by_one = ruleset.turn_draw in {TurnDraw.ONE_OR_TWO, TurnDraw.ONE_TO_THREE}
    assert not (one_by_one and before.pool and isinstance(before.step, Open)), "a player played before drawing"
    if isinstance(before.step, Drawn) and ruleset.turn_play_after_draw is TurnPlayAfterDraw.OTHER_TILES:
        assert played <= Counter(rack.tiles) - Counter([before.step.tile]), "the tile just drawn was played"
    if isinstance(play.table, Grid):
        check_play_on_grid(before.table, play.table, play, rack, ruleset)
    else:
        check_play_of_melds(melds_of(before.table), play.table, play, rack, ruleset)


def check_play_of_melds(before: Melds, after: Melds, play: TilesPlayed, rack: Rack, ruleset: Ruleset) -> None:
    """Checks the points of a play, and that it respects the initial meld, manipulation and the contract."""
    check_points(before, after, play)
    gone = Counter(map(laid, before)) - Counter(map(laid, after))
    if not rack.has_melded:
        at_once = ruleset.initial_meld_same_turn_table_play is InitialMeldSameTurnTablePlay.ALLOWED
        assert at_once or not gone, f"the initial meld changed the table: {gone}"
        if not gone:
            check_initial_meld(before, after, ruleset, at_once=at_once)
    if ruleset.manipulation is Manipulation.OFF:
        larger = [Counter(meld.tiles) for meld in after]
        assert all(any(Counter(meld.tiles) <= one for one in larger) for meld in before), "a meld was broken up"
    old, new_melds = tiles_on(before), Counter(map(laid, after)) - Counter(map(laid, before))
    for meld in after:
        # for other melds, it is unknown whether one of their tiles was played
        is_asked = new_melds[laid(meld)] and any(t not in old for t in meld.tiles)
        assert not is_asked or keeps_contract(meld, ruleset.contract), f"{meld} breaks the contract"


def check_points(before: Melds, after: Melds, play: TilesPlayed) -> None:
    """Checks the points of a play. Its jokers count as the most valuable ones of the new melds (R20)."""
    new = Counter(map(laid, after)) - Counter(map(laid, before))
    jokers = sorted((value for meld in after if new[laid(meld)] for value in joker_values(meld)), reverse=True)
    covered = sum(twist_melds.SLOTS.get(t, 0) for t in play.tiles)
    worth = sum(number_of(t) for t in play.tiles if t not in twist_melds.JOKERS) + sum(jokers[:covered])
    assert play.points == worth, f"{play.points} points for tiles worth {worth}"


def check_initial_meld(before: Melds, after: Melds, ruleset: Ruleset, *, at_once: bool) -> None:
    """Checks that the new melds, or some of them where the table may be used too, are an initial meld (R29 to R32)."""
    old = Counter(map(laid, before))
    melds = []
    for meld in after:
        melds += [meld] if old[laid(meld)] <= 0 else []
        old[laid(meld)] -= 1
    forbidden = ruleset.initial_meld_joker is InitialMeldJoker.FORBIDDEN
    if at_once and forbidden:
        melds = [meld for meld in melds if JOKER not in meld.tiles]
    assert not forbidden or all(JOKER not in meld.tiles for meld in melds), "a joker in the initial meld"
    run = ruleset.initial_meld_required_kind is InitialMeldRequiredKind.RUN
    assert not run or any(meld.kind is MeldKind.RUN for meld in melds), "an initial meld without a run"
    points = [counted(meld, ruleset) for meld in melds]
    single = ruleset.initial_meld_count is InitialMeldCount.SINGLE_MELD
    assert at_once or not single or len(melds) == 1, "several melds in place of one"
    together = ruleset.initial_meld_count is InitialMeldCount.ONE_OR_MORE
    more = ruleset.initial_meld_comparison is InitialMeldComparison.GREATER_THAN
    reached = sum(points) if together else max(points, default=0)
    assert reached >= ruleset.initial_meld_threshold + more, f"{points} are below the threshold"


def counted(meld: Meld, ruleset: Ruleset) -> int:
    """Returns the points of a meld in the initial meld."""
    return meld.points - (sum(joker_values(meld)) if ruleset.initial_meld_joker is InitialMeldJoker.ZERO else 0)


def joker_values(meld: Meld) -> list[int]:
    """Returns the value of each joker of a meld."""
    return [number_of(faces[0]) for faces in meld.joker_faces]


def laid(meld: Meld) -> tuple[MeldKind, tuple[Tile, ...], tuple[tuple[Tile, ...], ...]]:
    """Returns a meld as a key. The order of a group does not matter."""
    return meld.kind, meld.tiles if meld.kind is MeldKind.RUN else tuple(sorted(meld.tiles)), meld.joker_faces


def check_pull(before: Round, rack: Rack, play: TilesPlayed) -> None:
    """Checks a pull (TWO_RIVER): the newest River tiles, of which only the oldest is played."""
    river, pulled = before.river, play.pulled
    assert pulled == river[len(river) - len(pulled) :], "tiles were pulled that are not the River's newest"
    assert Counter(play.tiles) <= Counter(rack.tiles + pulled[:1]), "tiles were played that the player has not"
    assert not pulled or pulled[0] in play.tiles, "the key was not played"


def keeps_contract(meld: Meld, contract: Contract) -> bool:
    """Returns whether a meld satisfies the contract."""
    if contract is Contract.SINGLE_COLOR:
        return meld.kind is MeldKind.RUN
    if contract is Contract.SUM_AT_MOST_41:
        return meld.points <= 41
    stands_for = (t for t in (*meld.tiles, *(faces[0] for faces in meld.joker_faces)) if t != JOKER)
    return contract is Contract.OFF or all(number_of(t) < 10 for t in stands_for)


def check_turn(before: Game, round_: Round, game: Game, events: tuple[Event, ...]) -> None:
    """Checks that the next player who has not resigned has the turn (R10), with the right deadline (R54)."""
    if not isinstance(game.phase, Playing):
        return
    turn = game.phase.round.turn
    assert turn.seat in game.active_seats, f"seat {turn.seat} has the turn and has resigned"
    started = [event for event in events if isinstance(event, TurnStarted)]
    assert len(started) <= 1, "several turns began at once"
    is_timed = game.settings.turn_time_limit_seconds > 0 or game.settings.clock_total_seconds > 0
    assert (turn.deadline_ms is not None) == is_timed, "deadline without limit, or none"
    if not started:
        assert turn == round_.turn, "the turn changed and none began"
    elif not any(isinstance(event, LastChanceStarted) for event in events):
        place = round_.order.index(round_.turn.seat)
        following = round_.order[place + 1 :] + round_.order[:place]
        seat = next(seat for seat in following if seat in game.active_seats)
        assert turn.seat == seat, f"seat {turn.seat} has the turn instead of seat {seat}"
    if started:
        assert round_of(game).shown_play is None, "the turn before lives on"
        assert turn.revision == game.revision, "the turn has another revision than the change that started it"
    assert rules_of(before) == rules_of(game), "the rules changed"


def check_results(game: Game, events: tuple[Event, ...]) -> None:
    """Checks the results of rounds and games (R60 to R64), and that totals are sums of points."""
    for event in events:
        match event:
            case RoundEnded(result):
                scored = replace(result, racks=(), pool=(), is_open=False)
                assert scored == expected_result(game, len(game.results), result.end), "a round brought something else"
                check_racks(result, game)
                check_end(result, game)
                ends = any(isinstance(other, GameEnded) for other in events)
                assert ends == (expected_winners(game) is not None), "the game ended too early, or not at all"
                starts_itself = not ends and game.settings.round_pause_seconds > 0
                assert (event.next_round_ms is not None) == starts_itself, "the next round has another time"
            case GameEnded(winners) if any(isinstance(other, RoundEnded) for other in events):
                assert winners == expected_winners(game), "others won the game"
            case GameEnded(winners, abandoned=abandoned):
                assert winners or (abandoned and not game.results), "a game ended without a winner"
                left_to_bots = not people(game)
                assert abandoned != (len(sides(game)) == 1 or left_to_bots), "the game ended for another reason"
                assert set(winners) <= set(game.active_seats), "someone won who had resigned"
            case _:
                pass
    check_open_racks(game)
    totals: Counter[int] = Counter()
    for result in game.results:
        for seat in result.seats:
            totals[seat.seat] += seat.points
    for player in game.players:
        assert player.total_points == totals[player.seat], f"seat {player.seat} has not the sum of its points"


def check_racks(result: RoundResult, game: Game) -> None:
    """Checks that the result of a round that just ended has all racks and the pool, unless they stay hidden."""
    shown = game.settings.racks_shown
    assert game.round is not None, "the round is gone"
    kept = ((), ()) if shown is RacksShown.HIDDEN else (game.round.racks, game.round.pool)
    assert (result.racks, result.pool) == kept, "the result has other racks"
    assert result.is_open == (shown is RacksShown.AFTER_ROUND), "racks are open too early, or not at all"


def check_open_racks(game: Game) -> None:
    """Checks that a spectator sees the racks of all finished rounds, or of none (racks_shown)."""
    due = {
        RacksShown.HIDDEN: False,
        RacksShown.AFTER_ROUND: True,
        RacksShown.AFTER_GAME: isinstance(game.phase, Finished),
    }[game.settings.racks_shown]
    for result in see(game, None).results:
        assert [rack.seat for rack in result.racks] == ([seat.seat for seat in result.seats] if due else [])
        assert due or not result.pool, "the pool is seen"


def check_end(result: RoundResult, game: Game) -> None:
    """Checks the end of a round, and that its points sum to zero where the options imply it."""
    assert game.round is not None, "the round is gone"
    if sums_to_zero(result, rules_of(game)):
        assert sum(seat.points for seat in result.seats) == 0, f"the points do not sum to zero: {result}"
    empty = [seat.seat for seat in result.seats if seat.tile_count == 0]
    match result.end:
        case RoundEnd.WENT_OUT:
            assert len(empty) == 1, "not exactly one went out"
        case RoundEnd.BLOCKED:
            assert not empty, "someone went out and the round is blocked"
            assert not game.round.pool, "the round is blocked though the pool has tiles"
        case RoundEnd.KNOCKED:
            assert not empty, "someone went out and the round ended with a knock"
            lowest = min(seat.rack_value for seat in result.seats)
            assert lowest <= rules_of(game).knock_limit, "someone knocked with too many points"
        case RoundEnd.RESIGNED:
            assert not empty, "someone went out and the round ended by resigning"
            assert len(sides(game)) == 1, "the round ended by resigning and several are left"
        case RoundEnd.VOID:
            raise AssertionError("a round of a melding game is never void")


def sums_to_zero(result: RoundResult, ruleset: Ruleset) -> bool:
    """Returns whether points won and lost must be equal."""
    blocked = result.end in {RoundEnd.BLOCKED, RoundEnd.KNOCKED}
    more_lost = blocked and ruleset.score_blocked_points is ScoreBlockedPoints.OWN_PLUS_DIFFERENCE
    credited = ruleset.score_never_melded is ScoreNeverMelded.CREDIT_EVERY_OTHER_PLAYER
    only_won = ruleset.score_winner is not ScoreWinner.SUM_OF_LOSERS or ruleset.teams is Teams.PAIRS
    return not (more_lost or only_won or ruleset.contract_points or (credited and len(result.seats) > 2))


def check_views(game: Game, events: tuple[Event, ...]) -> None:
    """Checks that views do not depend on hidden state: other racks, the pool, others' choices and drafts (R4)."""
    rng = random.Random(game.revision)
    for seat in (None, *(player.seat for player in game.players)):
        other = with_other_hidden_tiles(game, seat, rng)
        drafts = random_draft(game, rng), random_draft(game, rng)
        if sees_drafts(game, seat):
            drafts = drafts[0], drafts[0]
        assert see(other, seat, drafts[1]) == see(game, seat, drafts[0]), f"seat {seat} sees hidden tiles"
        for event in events:
            disguised = with_other_tiles(event, seat, rng)
            assert see_event(disguised, seat) == see_event(event, seat), f"seat {seat} sees hidden tiles of {event}"


def with_other_hidden_tiles(game: Game, seat: int | None, rng: random.Random) -> Game:
    """Returns a game that looks the same to a seat.

    The tiles of the pool and of other racks are exchanged, and the step of the player to move differs."""
    if isinstance(game.phase, Lobby) or game.phase.round is None:
        return game
    round_ = round_of(game)
    racks, pool = shuffle_hidden(round_.racks, round_.pool, seat, rng)
    if round_.turn.seat != seat:
        round_ = replace(round_, step=with_other_step(round_.step, rng))
    declined = tuple(rack.seat for rack in racks if rng.random() < 0.5)
    phase = replace(game.phase, round=replace(round_, racks=racks, pool=pool, declined=declined))
    return replace(game, phase=phase, results=tuple(with_other_racks(result, rng) for result in game.results))


def with_other_racks(result: RoundResult, rng: random.Random) -> RoundResult:
    """Returns a result that looks the same, with other racks and another pool unless they are open."""
    if result.is_open:
        return result
    racks, pool = shuffle_hidden(result.racks, result.pool, None, rng)
    return replace(result, racks=racks, pool=pool)


def random_draft(game: Game, rng: random.Random) -> Draft | None:
    """Returns a draft of the turn in progress, or none."""
    if not isinstance(game.phase, Playing) or rng.random() < 0.5:
        return None
    turn, table = game.phase.round.turn, with_tiles(proposal_of(round_of(game).table), (rng.choice(faces(4)),))
    return Draft(turn.seat, turn.revision, table, rng.random() < 0.5, rng.randint(1, 9))


def with_other_step(step: Step, rng: random.Random) -> Step:
    """Returns the same step with other tiles."""
    match step:
        case Open():
            return step
        case Choosing():
            return Choosing((rng.choice(faces(4)), rng.choice(faces(4))))
        case Drawn():
            return Drawn(rng.choice(faces(4)))
        case Drawing(tiles):
            return Drawing(tuple(rng.choice(faces(4)) for _ in tiles))


def shuffle_hidden(
    racks: tuple[Rack, ...], pool: tuple[Tile, ...], seat: int | None, rng: random.Random
) -> tuple[tuple[Rack, ...], tuple[Tile, ...]]:
    """Returns racks and pool with the tiles shuffled that a seat does not see."""
    hidden = [*pool, *(t for rack in racks if rack.seat != seat for t in rack.tiles)]
    rng.shuffle(hidden)
    shuffled = []
    for rack in racks:
        if rack.seat == seat:
            shuffled.append(rack)
            continue
        shuffled.append(replace(rack, tiles=tuple(sorted(hidden[: len(rack.tiles)]))))
        del hidden[: len(rack.tiles)]
    return tuple(shuffled), tuple(hidden)


def with_other_tiles(event: Event, seat: int | None, rng: random.Random) -> Event:
    """Returns an event that looks the same to a seat."""
    match event:
        case RoundStarted(racks=racks, pool=pool):
            racks, pool = shuffle_hidden(racks, pool, seat, rng)
            return replace(event, racks=racks, pool=pool)
        case TileDrawn(drawer, tile) if drawer != seat:
            return replace(event, tile=Tile(tile % JOKER + 1))
        case TilesOffered(drawer, (first, second)) if drawer != seat:
            return replace(event, tiles=(Tile(second % JOKER + 1), Tile(first % JOKER + 1)))
        case RoundEnded(result):
            return replace(event, result=with_other_racks(result, rng))
        case TilesDrawn(drawer, tiles) | TurnTimedOut(drawer, tiles) | TurnPenalised(drawer, tiles) if drawer != seat:
            return replace(event, tiles=tuple(Tile(tile % JOKER + 1) for tile in tiles))
        case _:
            return event


def check_refusals(game: Game) -> None:
    """Checks that illegal actions are refused with reasons. An illegal play may have consequences instead."""
    was = hash((game.players, game.phase, game.results))
    for action in illegal_actions(game):
        answer = apply(game, action, 0, ANALYSIS)
        if isinstance(answer, Applied):
            assert isinstance(action, PlayTiles), f"{action} was accepted"
            assert round_of(answer.game).table == round_of(game).table, f"{action} was played"
            assert not any(isinstance(event, TilesPlayed) for event in answer.events), f"{action} was played"
        assert isinstance(answer, Refused) or answer.violations, f"{action} was accepted"
        assert answer.violations, f"{action} was refused without a reason"
    assert hash((game.players, game.phase, game.results)) == was, "a refused action changed the game"


def illegal_actions(game: Game) -> Iterator[Action]:
    """Yields actions that are illegal in a running game or after its end, in any position."""
    shuffle = random_shuffle(rules_of(game), random.Random(0), len(game.active_seats))
    if game.rematch_game_id:
        return
    if game.round is None:
        yield from illegal_actions_without_round(game, shuffle)
        return
    round_ = round_of(game)
    table = proposal_of(round_.table)
    yield Join("Zoë")
    yield Leave(1)
    yield KickPlayer(HOST, 1)
    yield SetReady(1, is_ready=True)
    yield StartGame(1, shuffle)
    yield from (AbortGame(player.seat) for player in game.players if player.resigned)
    yield from (TakeOverSeat(HOST, player.seat, "Zoë", BotLevel.EASY) for player in game.players if not player.resigned)
    if isinstance(game.phase, Finished | Aborted):
        yield from (AbortGame(HOST), RenewSeatToken(1), Resign(1), StartNextRound(1, shuffle))
    else:
        yield AnnounceRematch("0" * 32)
    for player in game.players:
        if not player.stand_in:
            yield from (ReturnToSeat(player.seat), StandIn(DrawTile(player.seat)))
    if not isinstance(game.phase, Playing):
        yield from (DrawTile(1), Pass(1), PlayTiles(1, table), LayOnRiver(1, JOKER))
        yield from (ClaimError(1, game.revision, agrees=True), RequestRedeal(1, shuffle))
        return
    seat = round_.turn.seat
    yield StartNextRound(seat, shuffle)
    for player in game.players:
        if player.seat != seat:
            yield from (DrawTile(player.seat), Pass(player.seat), PlayTiles(player.seat, table))
            yield LayOnRiver(player.seat, Tile(1))
        dealt_in = any(rack.seat == player.seat for rack in round_.racks)
        if not dealt_in or player.resigned or not has_right_to_redeal(round_, player.seat, rules_of(game)):
            yield RequestRedeal(player.seat, shuffle)
    yield from illegal_claims(game, round_)
    yield from illegal_turns(round_, table)
    plays = tuple(illegal_plays(round_, table))
    yield plays[game.revision % len(plays)]


def illegal_actions_without_round(game: Game, shuffle: Shuffle) -> Iterator[Action]:
    """Yields actions that are illegal in the lobby, or after it was aborted."""
    if isinstance(game.phase, Lobby):
        yield AnnounceRematch("0" * 32)
        yield from (KickPlayer(HOST, seat) for seat in set(range(1, 7)) - {player.seat for player in game.players})
        if len(game.players) < rules_of(game).players_min:
            yield StartGame(HOST, shuffle)
    else:
        yield from (AbortGame(HOST), RenewSeatToken(HOST), Join("Zoë"))
    for player in game.players:
        seat = player.seat
        yield from (Join(player.name), Join("Zoë", seat=seat), ReturnToSeat(seat), StandIn(DrawTile(seat)))
        yield from (DrawTile(seat), Pass(seat), PlayTiles(seat, ()), LayOnRiver(seat, JOKER), Resign(seat))
        yield from (StartNextRound(seat, shuffle), RequestRedeal(seat, shuffle), ClaimError(seat, 1, agrees=True))
        if not player.is_host:
            yield from (AbortGame(seat), KickPlayer(seat, seat))
        needs_all = game.settings.start_by in {StartBy.ALL_READY, StartBy.FULL_OR_READY}
        is_unready = needs_all and not all(p.is_ready for p in game.players)
        if is_unready or (game.settings.start_by is StartBy.HOST and not player.is_host):
            yield StartGame(seat, shuffle)


def check_drafts(game: Game) -> None:
    """Checks which drafts are accepted: in a turn, by its player, without tiles that the player does not have."""
    if not isinstance(game.phase, Playing):
        for player in game.players:
            assert isinstance(arrange(game, player.seat, (), 0), Refused), "a draft without a turn"
        return
    round_ = round_of(game)
    seat, table = round_.turn.seat, proposal_of(round_.table, states_kinds=False)
    rack = round_.rack(seat).tiles
    for other in (other for other in game.active_seats if other != seat):
        assert isinstance(arrange(game, other, table, 0), Refused), "a draft in another player's turn"
    drafts = (table, with_tiles(table, rack), without_first(table), with_tiles(table, rack[:1]))
    for draft in drafts:
        arranged = arrange(game, seat, draft, 0)
        assert isinstance(arranged, Refused) == isinstance(round_.step, Choosing), "a draft of own tiles was refused"
        if isinstance(arranged, Draft):
            assert (arranged.seat, arranged.turn_revision) == (seat, round_.turn.revision), "a draft of another turn"
            played = apply(game, PlayTiles(seat, draft), 0, ANALYSIS)
            is_legal = isinstance(played, Applied) and not played.violations
            must_call = rules_of(game).win_call is WinCall.REQUIRED
            assert arranged.is_legal == is_legal or must_call, "a draft is not legal as the play of it"
    foreign = next((tile for tile in round_.pool if tile not in rack and tile not in round_.river), None)
    if foreign is not None:
        assert isinstance(arrange(game, seat, with_tiles(table, (foreign,)), 0), Refused), "a draft shows the pool"


def illegal_turns(round_: Round, table: ProposedTable) -> Iterator[Action]:
    """Yields actions that are illegal at this step of the turn."""
    seat = round_.turn.seat
    match round_.step:
        case Choosing(tiles):
            yield from (DrawTile(seat), Pass(seat), PlayTiles(seat, table))
            yield LayOnRiver(seat, next(t for t in faces(4) if t not in tiles))
        case Drawn(tile):
            yield from (DrawTile(seat), LayOnRiver(seat, tile))
        case Drawing(tiles):
            yield Pass(seat) if round_.pool else DrawTile(seat)
            yield LayOnRiver(seat, tiles[0])
        case Open():
            yield Pass(seat) if round_.pool else DrawTile(seat)
            yield LayOnRiver(seat, round_.rack(seat).tiles[0])


def illegal_claims(game: Game, round_: Round) -> Iterator[ClaimError]:
    """Yields illegal votes: on nothing, on another play, without a right to vote, twice, or after the claim failed."""
    shown = round_.shown_play
    for player in game.players:
        yield ClaimError(player.seat, game.revision + 1, agrees=True)
        if shown is None:
            yield ClaimError(player.seat, game.revision, agrees=False)
        elif player.resigned or player.seat in (round_.turn.seat, *shown.claimed) or shown.against is not None:
            yield ClaimError(player.seat, shown.revision, agrees=True)


def illegal_plays(round_: Round, table: ProposedTable) -> Iterator[PlayTiles]:
    """Yields illegal plays: no tile played, or missing, loose, duplicated, foreign or River tiles."""
    seat, pool = round_.turn.seat, round_.pool
    rack = round_.rack(seat)
    yield PlayTiles(seat, table)
    yield PlayTiles(seat, with_tiles(table, rack.tiles[:1]))
    yield PlayTiles(seat, with_tiles(table, rack.tiles[:1] * 3))
    yield PlayTiles(seat, table, len(round_.river))
    yield PlayTiles(seat, with_tiles(table, round_.river[:1]), 0)
    yield from illegal_changes(table, rack)
    foreign = [t for t in pool if t not in rack.tiles and t not in JOKERS]
    if foreign:
        place = faces(6).index(foreign[0])
        first = place // 13 * 13 + min(place % 13, 10)
        yield PlayTiles(seat, with_tiles(table, faces(6)[first : first + 3]))


def illegal_changes(table: ProposedTable, rack: Rack) -> Iterator[PlayTiles]:
    """Yields illegal plays that take tiles from a table, repeat or move some, cover one, or have another layout."""
    seat, played = rack.seat, rack.tiles[:1]
    if isinstance(table, Grid):
        tiles = table.placements
        yield PlayTiles(seat, with_tiles((), played))
        yield PlayTiles(seat, with_tiles(Grid(tiles[1:]), played))
        yield PlayTiles(seat, with_tiles(Grid(tiles + tiles[:1]), played))
        yield PlayTiles(seat, with_tiles(with_tiles(Grid(tiles[1:]), tuple(one.tile for one in tiles[:1])), played))
        yield PlayTiles(seat, Grid((*tiles, *(Placement(t, one.cell) for one in tiles[:1] for t in played))))
    elif table:
        yield PlayTiles(seat, with_tiles(table[1:], table[0].tiles[1:] + played))
        yield PlayTiles(seat, with_tiles((*table, table[0]), played))
        yield PlayTiles(seat, Grid((Placement(played[0], Cell(0, 0)),)))
