"""The invariants of games of discards, in every state of random ones. Expected values do not come from the engine."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.actions import Resign
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
    HandFinished,
    HandsDealt,
    PenaltyScored,
    PoolTileTaken,
    RackFinished,
    ThreeTilesLeft,
    TileDiscarded,
)
from engine.discard.game import round_of, rules_of
from engine.discard.laying import PenaltyCause
from engine.discard.round import DiscardRound, Pile, ToDiscard, ToTake
from engine.discard.ruleset import PoolEmpty, Ruleset, ScoreSystem, Teams
from engine.events import Event, RoundEnded, TurnStarted, TurnTimedOut
from engine.game import Aborted, Finished, Game, Lobby, Playing, RoundEnd, RoundResult
from engine.record import record_of, replayed
from engine.record_text import format_record, parse_record
from engine.replay import replay
from engine.sight import see, see_event
from engine.tiles import JOKER, Tile
from engine.turns import apply
from engine.violations import Refused
from oracles import american, okey_101
from oracles.okey_hands import is_finished
from support.invariants import RECORD_EVERY
from support.okey_games import TILES, random_changes, random_ruleset
from support.random_play import Change

Choose = Callable[[random.Random], Ruleset]

VIEWS_EVERY = 7
"""The interval, in changes, of comparing views with those of a game with other hidden tiles."""


def play_checked_game(seed: int, choose: Choose = random_ruleset) -> tuple[tuple[Event, ...], ...]:
    """Plays a random game, and checks each change of it and its replay, and for one game in ten its record.

    Returns its events, by change.
    """
    try:
        return tuple(change.applied.events for change in _check_game(seed, choose))
    except Exception as error:
        error.add_note(f"in the random game of seed {seed}")
        raise


def _check_game(seed: int, choose: Choose) -> Sequence[Change]:
    rng = random.Random(seed)
    changes: list[Change] = []
    before: Game | None = None
    for change in random_changes(seed, choose):
        changes.append(change)
        game = change.applied.game
        assert game.revision == len(changes)
        if game.round is not None:
            check_round(game)
            if before is not None and before.round is not None:
                check_change(before, game, change.applied.events)
            if game.revision % VIEWS_EVERY == 0 or not isinstance(game.phase, Playing):
                check_views(game, change.applied.events, rng)
                check_refusals(game)
        before = game
    assert replay(change.applied.events for change in changes) == changes[-1].applied.game
    if seed % RECORD_EVERY == 0:
        check_record(changes)
    return changes


def check_round(game: Game) -> None:
    """Checks that no tile is lost or made, and the numbers of tiles."""
    round_ = round_of(game)
    held = [t for rack in round_.racks for t in rack.tiles] + [t for pile in round_.piles for t in pile.tiles]
    finishing = [round_.finish.tile] if round_.finish else []
    on_table = [t for meld in round_.table.melds for t in meld] if round_.table else []
    face_up = [t for t in (round_.indicator, round_.trump_to_take) if t is not None]
    tiles = TILES if round_.indicator else (*TILES[:-2], JOKER, JOKER)
    assert Counter([*face_up, *held, *round_.pool, *finishing, *on_table]) == Counter(tiles)
    assert sorted(round_.tiles) == sorted(tiles)
    assert round_.names_its_seats
    assert round_.to_act == (round_.turn.seat,)
    if isinstance(game.phase, Playing):
        for rack in round_.racks:
            must_discard = rack.seat == round_.turn.seat and not isinstance(round_.step, ToTake)
            if not game.player(rack.seat).resigned and not rack.has_melded:
                assert len(rack.tiles) == rules_of(game).hand_size + must_discard
            assert rack.tiles
        goes_on = rules_of(game).pool_empty is PoolEmpty.DISCARD_TAKEN_OR_ENDS
        assert round_.pool or goes_on or not isinstance(round_.step, ToTake)
    check_table(game, round_)
    start = 0 if round_.table else rules_of(game).score_start
    for player in game.players:
        points = [seat.points for result in game.results for seat in result.seats if seat.seat == player.seat]
        assert player.total_points == start + sum(points)


def check_table(game: Game, round_: DiscardRound) -> None:
    """Checks that all melds are whole, and that those who have opened opened with enough."""
    table, rules = round_.table, rules_of(game)
    assert (table is not None) == rules.melds_on_table
    if table is None:
        return
    for meld in table.melds:
        whole = okey_101.is_pair(meld, round_.okey) or okey_101.is_meld(meld, round_.okey, one_high=rules.run_one_high)
        assert whole, meld
    assert {opening.seat for opening in table.openings} == {rack.seat for rack in round_.racks if rack.has_melded}
    for opening in table.openings:
        assert opening.amount >= (rules.opening_pairs if opening.is_pairs else rules.opening_points)


def check_change(before: Game, game: Game, events: tuple[Event, ...]) -> None:
    """Checks whose turn follows, finished hands, and the points of rounds."""
    old = round_of(before)
    for event in events:
        match event:
            case TurnStarted(turn) if not any(isinstance(one, HandsDealt) for one in events):
                place = old.order.index(old.turn.seat)
                following = old.order[place + 1 :] + old.order[:place]
                assert turn.seat == next(seat for seat in following if seat in game.active_seats)
            case HandFinished(seat, tile):
                left = list(old.rack(seat).tiles)
                left.remove(tile)
                one_high = rules_of(game).run_one_high or rules_of(game).concealed_wins
                assert is_finished(tuple(left), old.okey, one_high=one_high)
            case TileDiscarded(seat, tile) if old.table is not None:
                costs = rules_of(game).discard_penalty and (
                    tile == old.okey
                    or okey_101.fits(old.table.melds, tile, old.okey, one_high=rules_of(game).run_one_high)
                )
                cost = sum(one.points for one in events if isinstance(one, PenaltyScored) and one.seat == seat)
                assert cost == (rules_of(game).discard_penalty if costs else 0)
                is_said = rules_of(game).concealed_wins and old.rack(seat).has_melded and len(old.rack(seat).tiles) == 4
                assert is_said == any(isinstance(one, ThreeTilesLeft) for one in events)
            case RackFinished(seat, tile, is_foot=is_foot):
                assert round_of(game).rack(seat).tiles == ()
                assert is_foot or old.rack(seat).tiles == (tile,)
                assert is_foot != old.rack(seat).has_melded
                assert any(rack.has_melded for rack in old.racks)
            case RoundEnded(result) if old.indicator is None:
                check_paid(game, round_of(game), result)
            case RoundEnded(result) if old.table is not None:
                check_collected(game, round_of(game), result)
            case RoundEnded(result):
                check_result(game, round_of(game), result)
            case _:
                pass


def check_result(game: Game, round_: DiscardRound, result: RoundResult) -> None:
    side = {seat: seat % 2 if rules_of(game).teams is Teams.PAIRS else seat for seat in round_.order}
    cost = Counter[int]()
    if isinstance(round_.finish, HandFinished):
        cost[side[round_.finish.seat]] += (
            2 * (1 + round_.finish.is_pairs) * (2 if round_.finish.tile == round_.okey else 1)
        )
    if round_.shown_by:
        cost[side[round_.shown_by]] += 1
    paid = Counter[int]()
    for penalty in round_.penalties:
        assert penalty.cause is PenaltyCause.FALSE_FINISH
        paid[side[penalty.seat]] += rules_of(game).score_false_finish
    for seat in result.seats:
        lost = sum(points for winner, points in cost.items() if winner != side[seat.seat])
        assert seat.points == -lost - paid[side[seat.seat]]
    assert (result.end is RoundEnd.WENT_OUT) == (round_.finish is not None)
    is_over = result.end is RoundEnd.RESIGNED or any(player.total_points <= 0 for player in game.players)
    is_over |= len(game.results) == rules_of(game).match_rounds
    only_bots = all(player.bot or player.resigned for player in game.players)
    assert isinstance(game.phase, Finished) == (is_over or only_bots)
    if isinstance(game.phase, Finished):
        most = max(player.total_points for player in game.players if not player.resigned)
        best = tuple(p.seat for p in game.players if p.total_points == most and not p.resigned)
        assert game.phase.winners == best


def check_collected(game: Game, round_: DiscardRound, result: RoundResult) -> None:
    """Checks the points of a round of 101 Okey, and who wins the game."""
    rules, finish, table = rules_of(game), round_.finish, round_.table
    assert table
    penalties = tuple((one.seat, one.points) for one in round_.penalties)
    points = {seat.seat: seat.points for seat in result.seats}
    ended = okey_101.Ended(
        round_.okey,
        {rack.seat: rack.tiles for rack in round_.racks},
        {one.seat: one.is_pairs for one in table.openings},
        penalties,
        finish.seat if finish else None,
        finish.tile if finish else None,
        isinstance(finish, RackFinished) and finish.is_at_once,
        rules.teams is Teams.PAIRS,
    )
    match result.end:
        case RoundEnd.VOID:
            assert {one.seat for one in table.openings if one.is_pairs} >= set(game.active_seats)
            assert not any(points.values())
        case RoundEnd.RESIGNED:
            assert points == {seat: sum(cost for who, cost in penalties if who == seat) for seat in points}
        case _:
            assert (result.end is RoundEnd.WENT_OUT) == (finish is not None)
            assert points == okey_101.scores(ended)
    played = sum(one.end is not RoundEnd.VOID for one in game.results)
    only_bots = all(player.bot or player.resigned for player in game.players)
    is_over = result.end is RoundEnd.RESIGNED or only_bots or played == rules.match_rounds
    assert isinstance(game.phase, Finished) == is_over
    if isinstance(game.phase, Finished):
        totals = Counter[int]()
        for player in game.players:
            totals[player.seat % 2 if rules.teams is Teams.PAIRS else player.seat] += player.total_points
        of = {p.seat: totals[p.seat % 2 if rules.teams is Teams.PAIRS else p.seat] for p in game.players}
        able = [p.seat for p in game.players if not p.resigned]
        assert game.phase.winners == tuple(seat for seat in able if of[seat] == min(of[one] for one in able))


def check_paid(game: Game, round_: DiscardRound, result: RoundResult) -> None:
    """Checks the points of a round of American or International Rummikub, and who wins the game."""
    rules, finish, racks = rules_of(game), round_.finish, round_.racks
    named = isinstance(finish, HandFinished) and next(hand for hand in rules.hands if hand.name == finish.name)
    ended = american.Ended(
        {rack.seat: rack.tiles for rack in racks},
        frozenset(rack.seat for rack in racks if rack.has_melded),
        finish.seat if finish else None,
        finish.tile if finish else None,
        named.scores[sum(part.count(JOKER) for part in finish.hand)]
        if named and isinstance(finish, HandFinished)
        else 0,
        isinstance(finish, RackFinished) and finish.is_foot,
        round_.trump,
        rules.score_trump_twin,
        rules.score_round_up,
    )
    is_american = rules.score_system is ScoreSystem.AMERICAN
    points = {seat.seat: seat.points for seat in result.seats}
    if result.end is RoundEnd.RESIGNED:
        assert not any(points.values())
    else:
        assert (result.end is RoundEnd.WENT_OUT) == (finish is not None)
        assert points == (american.american(ended) if is_american else american.international(ended))
    only_bots = all(player.bot or player.resigned for player in game.players)
    is_over = result.end is RoundEnd.RESIGNED or only_bots or len(game.results) == rules.match_rounds
    assert isinstance(game.phase, Finished) == is_over
    if isinstance(game.phase, Finished):
        worth = {p.seat: p.total_points * (1 if is_american else -1) for p in game.players if not p.resigned}
        assert game.phase.winners == tuple(seat for seat in worth if worth[seat] == max(worth.values()))


# Views


def check_views(game: Game, events: tuple[Event, ...], rng: random.Random) -> None:
    """Checks that a view does not change with tiles that its seat may not see."""
    for seat in (None, *(player.seat for player in game.players)):
        other = with_other_hidden_tiles(game, seat, rng)
        assert see(other, seat) == see(game, seat), f"seat {seat} sees hidden tiles"
        for event in events:
            assert see_event(with_other_tiles(event, seat, rng), seat) == see_event(event, seat)


def with_other_hidden_tiles(game: Game, seat: int | None, rng: random.Random) -> Game:
    """Returns a game that looks the same to a seat."""
    assert not isinstance(game.phase, Lobby | Aborted)
    round_ = round_of(game)
    covered = [t for pile in round_.piles for t in pile.tiles[:-1]]
    hidden = [*round_.pool, *covered, *(t for rack in round_.racks if rack.seat != seat for t in rack.tiles)]
    rng.shuffle(hidden)
    deck = iter(hidden)
    racks = tuple(
        rack if rack.seat == seat else replace(rack, tiles=tuple(sorted(next(deck) for _ in rack.tiles)))
        for rack in round_.racks
    )
    piles = tuple(Pile(pile.seat, (*(next(deck) for _ in pile.tiles[:-1]), *pile.tiles[-1:])) for pile in round_.piles)
    step = round_.step
    if isinstance(step, ToDiscard) and step.taken and not step.is_seen and round_.turn.seat != seat:
        step = ToDiscard(rng.choice(TILES))
    made = replace(round_, racks=racks, piles=piles, pool=tuple(deck), step=step)
    results = tuple(
        result if result.is_open else replace(result, racks=result.racks[::-1], pool=result.pool[::-1])
        for result in game.results
    )
    return replace(game, phase=replace(game.phase, round=made), results=results)


def with_other_tiles(event: Event, seat: int | None, rng: random.Random) -> Event:
    """Returns an event that looks the same to a seat."""
    match event:
        case HandsDealt(racks=racks, pool=pool):
            hidden = [*pool, *(t for rack in racks if rack.seat != seat for t in rack.tiles)]
            rng.shuffle(hidden)
            deck = iter(hidden)
            dealt = tuple(
                rack if rack.seat == seat else replace(rack, tiles=tuple(sorted(next(deck) for _ in rack.tiles)))
                for rack in racks
            )
            return replace(event, racks=dealt, pool=tuple(deck))
        case PoolTileTaken(taker) if taker != seat:
            return replace(event, tile=rng.choice(TILES))
        case TurnTimedOut(taker, tiles) if taker != seat:
            return replace(event, tiles=tuple(rng.choice(TILES) for _ in tiles))
        case RoundEnded(result) if not result.is_open:
            return replace(event, result=replace(result, racks=result.racks[::-1], pool=result.pool[::-1]))
        case _:
            return event


# Refusals


def check_refusals(game: Game) -> None:
    """Checks that actions of others, at the wrong step, and with other tiles are refused and change nothing."""
    round_ = round_of(game)
    was = hash((game.players, game.phase, game.results))
    absent = next(t for t in TILES if t not in round_.rack(round_.turn.seat).tiles)
    for player in game.players:
        seat = player.seat
        mine = isinstance(game.phase, Playing) and seat == round_.turn.seat
        takes = mine and isinstance(round_.step, ToTake)
        if not takes:
            assert isinstance(apply(game, TakeFromPool(seat), 0), Refused)
            assert isinstance(apply(game, TakeDiscard(seat), 0), Refused)
        if not mine or takes:
            tile: Tile = next((t for rack in round_.racks if rack.seat == seat for t in rack.tiles), Tile(1))
            assert isinstance(apply(game, DiscardTile(seat, tile), 0), Refused)
            assert isinstance(apply(game, FinishHand(seat, tile), 0), Refused)
            assert isinstance(apply(game, LayTiles(seat, ()), 0), Refused)
            assert isinstance(apply(game, ReturnDiscard(seat), 0), Refused)
        if not mine or seat in round_.discarded:
            assert isinstance(apply(game, ShowIndicator(seat), 0), Refused)
        if player.resigned:
            assert isinstance(apply(game, Resign(seat), 0), Refused)
    assert isinstance(apply(game, DiscardTile(round_.turn.seat, absent), 0), Refused)
    assert isinstance(apply(game, FinishHand(round_.turn.seat, absent), 0), Refused)
    assert hash((game.players, game.phase, game.results)) == was


# Records


def check_record(changes: Sequence[Change]) -> None:
    """Checks that the record of a game is read from its text as the same, and plays the same game."""
    record = record_of((change.applied.game.revision, change.now_ms, change.applied.events) for change in changes)
    assert parse_record(format_record(record)) == record
    games = {change.applied.game.revision: change.applied.game for change in changes}
    for step in replayed(record):
        told = games[step.move.revision]
        assert (step.after.round, step.after.results) == (told.round, told.results)
        assert [p.total_points for p in step.after.players] == [p.total_points for p in told.players]
