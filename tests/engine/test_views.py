from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import get_args, get_type_hints

import pytest

from engine.events import (
    CommonEvent,
    Event,
    GameCreated,
    GameEnded,
    PlayerJoined,
    PlayerKicked,
    RematchCreated,
    RoundEnded,
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
from engine.melding.drafts import Draft
from engine.melding.events import (
    IllegalPlayShown,
    MeldingEvent,
    RiverTileLaid,
    RoundStarted,
    StartDraw,
    TileDrawn,
    TilesDrawn,
    TilesOffered,
    TilesPlayed,
    TurnEnded,
    TurnPassed,
    TurnPenalised,
)
from engine.melding.game import round_of, seen_round
from engine.melding.melds import Meld, MeldKind, ProposedMeld
from engine.melding.round import Choosing, Drawn, Open, ShownPlay, Step
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import SABRA, MatchEnd
from engine.melding.table import ProposedTable, Table
from engine.melding.views import RoundStartedView, TilesDrawnView, TurnPenalisedView
from engine.notation import parse_tile, parse_tiles
from engine.room_settings import DEFAULT_SETTINGS, DraftVisibility, RacksShown, Spectators
from engine.seats import HOST, BotLevel, Player, Rack, ReservedSeat, Turn
from engine.sight import is_open_to_spectators, see, see_event
from engine.tiles import JOKER, Tile
from engine.views import (
    GameView,
    OpenEvent,
    PlayerView,
    TurnTimedOutView,
)
from engine.violations import Reason
from support.positions import NOW
from support.random_play import Change, random_changes
from support.rooms import Rules, parts, room

TWO_ROUNDS = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
SEATS = (None, HOST, 1, 2, 3)
"""All viewers."""
TILE_FIELDS = {
    *("tile", "tiles", "rack", "pool", "racks", "joker_faces", "start_draw", "deal"),
    *("river", "pulled", "declared", "tiles_drawn"),
}
"""The names of fields with tiles, in any dataclass of the engine."""


CHANGES: tuple[Change, ...] = tuple(random_changes(32, 3, TWO_ROUNDS))
"""A game with default rules in which every possible event happens."""

ARRANGED = (ProposedMeld((Tile(1), Tile(2), JOKER), MeldKind.RUN, (Tile(3),)), ProposedMeld((Tile(4),)))
DRAFT = Draft(2, 7, ARRANGED, is_legal=False, number=3)
SHOWN = ShownPlay(5, (ProposedMeld((Tile(5), Tile(6)), None, (Tile(7),)),), (Reason.MELD_TOO_SHORT,), (2,), 3)


def a_game(step: Step, rules: Rules = SABRA) -> Game:
    """Returns a game of three in which seat 2 has the turn, a drawn tile and a shown illegal play."""
    racks = tuple(Rack(seat, tuple(map(Tile, range(seat * 10, seat * 10 + 5)))) for seat in (1, 2, 3))
    table = (Meld((Tile(40), Tile(41), Tile(42)), MeldKind.RUN, 6),)
    turn = Turn(2, 1000, 7)
    pool, river = (Tile(50), Tile(51)), (Tile(8), Tile(9), Tile(7))
    round_ = Round(1, (3, 2, 1), table, racks, pool, turn, (), river, step, SHOWN, (2, 1))
    return Game(*parts(rules), 7, tuple(Player(seat, f"player {seat}") for seat in (1, 2, 3)), Playing(round_))


GAMES = [
    *(change.applied.game for change in CHANGES),
    *(a_game(step) for step in (Open(), Choosing((Tile(45), Tile(46))), Drawn(Tile(22)))),
]

TWO, THREE = (Tile(11), Tile(12)), (Tile(13), Tile(14), JOKER)
OPEN_RESULT = RoundResult(1, RoundEnd.BLOCKED, (1,), (), (Rack(1, TWO), Rack(2, THREE)), THREE, is_open=True)
HIDDEN_RESULT = replace(OPEN_RESULT, is_open=False)
DECLINED = (
    TileDrawn(2, Tile(1), declined=True),
    TilesDrawn(2, THREE, declined=True),
    TilesOffered(2, TWO, declined=True),
    TurnEnded(2, declined=True),
    TurnPassed(2, declined=True),
)
CHOSEN: tuple[Event, ...] = (
    GameCreated(SABRA, DEFAULT_SETTINGS, (ReservedSeat(1, "Ada"),)),
    PlayerJoined(1, "Ada", starts_ms=NOW),
    PlayerJoined(2, "Bot", BotLevel.EASY, is_host=True),
    RoundStarted(1, (StartDraw(1, Tile(4)),), (2, 1), (Rack(1, TWO), Rack(2, THREE)), (Tile(1), Tile(1))),
    TurnStarted(Turn(2, None)),
    TilesPlayed(2, TWO, (Meld(THREE, MeldKind.RUN, 9, ((Tile(15),),)),), 5, pulled=THREE),
    TileDrawn(2, Tile(1)),
    TilesDrawn(2, THREE),
    TilesOffered(2, TWO),
    TurnEnded(2),
    TurnPassed(2),
    *DECLINED,
    IllegalPlayShown(2, ARRANGED, (Reason.MELD_TOO_SHORT,)),
    RoundEnded(HIDDEN_RESULT),
    RoundEnded(OPEN_RESULT),
    GameEnded((1,)),
    GameEnded((1,), (OPEN_RESULT,)),
    RoundEnded(RoundResult(1, RoundEnd.BLOCKED, (1,), ()), 1_000),
    GameEnded((1,), abandoned=True),
)
VALUES: Mapping[object, object] = {
    int: 2,
    int | None: 2,
    bool: True,
    str: "0" * 32,
    Tile: Tile(1),
    tuple[int, ...]: (2, 1),
    tuple[Tile, ...]: THREE,
    BotLevel | None: BotLevel.EASY,
    bytes: bytes(32),
}
"""A value of each type that the fields of plain events have."""


def plain(kind: type) -> Event:
    """Returns an event with a value of each field's type."""
    made: Event = kind(**{name: VALUES[hint] for name, hint in get_type_hints(kind).items()})
    return made


KINDS: tuple[type, ...] = get_args(CommonEvent | MeldingEvent)
EVENTS = (*CHOSEN, *(plain(kind) for kind in KINDS if kind not in set(map(type, CHOSEN))))
"""Events of each type."""


def tiles_in(value: object, name: str = "") -> Iterator[Tile]:
    """Yields every tile in a value, at any depth."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from tiles_in(getattr(value, field.name), field.name)
    elif isinstance(value, tuple | list | set | frozenset):
        for part in value:
            yield from tiles_in(part, name)
    elif isinstance(value, dict):
        raise AssertionError(f"a dict is not looked into: {name}")
    elif isinstance(value, int) and name in TILE_FIELDS:
        yield Tile(value)


def on_table(table: Table | ProposedTable) -> Counter[Tile]:
    return Counter(tiles_in(table))


def test_the_walk_finds_tiles_wherever_they_are() -> None:
    game = CHANGES[10].applied.game
    round_ = round_of(game)
    held = Counter(tiles_in(game)) - on_table(round_.table)
    assert sum(held.values()) == sum(len(rack.tiles) for rack in round_.racks) + len(round_.pool)
    deal = next(event for change in CHANGES for event in change.applied.events if isinstance(event, RoundStarted))
    assert len(list(tiles_in(deal))) == 106 + len(deal.draws)


@pytest.mark.unmeasured
@pytest.mark.parametrize("seat", SEATS)
def test_a_seat_sees_only_open_and_own_tiles_of_a_game(seat: int | None) -> None:
    for game in GAMES:
        draft = replace(DRAFT, turn_revision=game.round.turn.revision) if game.round else DRAFT
        assert Counter(tiles_in(see(game, seat, draft))) == open_tiles_in(game, seat)


def open_tiles_in(game: Game, seat: int | None) -> Counter[Tile]:
    """Returns the tiles of a game that a seat may see."""
    if game.round is None:
        return Counter()
    round_ = round_of(game)
    found = Counter(t for rack in round_.racks if rack.seat == seat for t in rack.tiles)
    found += on_table(round_.table) + Counter(round_.river)
    if round_.shown_play:
        found += on_table(round_.shown_play.table)
    found += open_tiles_of_results(game.results)
    if round_.turn.seat == seat and isinstance(game.phase, Playing):
        found += Counter(tiles_in(round_.step)) + on_table(ARRANGED)
    return found


def open_tiles_of(event: Event, seat: int | None) -> Counter[Tile]:
    """Returns the tiles of an event that a seat may see."""
    match event:
        case RoundStarted(draws=draws, racks=racks):
            own = [t for rack in racks if rack.seat == seat for t in rack.tiles]
            return Counter([*own, *(draw.tile for draw in draws)])
        case TileDrawn(drawer, tile):
            return Counter([tile] if drawer == seat else [])
        case (
            TilesDrawn(drawer, tiles)
            | TilesOffered(drawer, tiles)
            | TurnTimedOut(drawer, tiles)
            | TurnPenalised(drawer, tiles)
        ):
            return Counter(tiles if drawer == seat else ())
        case TilesPlayed(tiles=tiles, table=table, pulled=pulled):
            return Counter(tiles) + on_table(table) + Counter(pulled)
        case RiverTileLaid(tile=tile):
            return Counter([tile])
        case IllegalPlayShown(table=proposed):
            return on_table(proposed)
        case RoundEnded(result):
            return open_tiles_of_results((result,))
        case GameEnded(opened=results):
            return open_tiles_of_results(results)
        case _:
            return Counter()


def open_tiles_of_results(results: tuple[RoundResult, ...]) -> Counter[Tile]:
    """Returns the tiles of finished rounds that everyone may see."""
    racks = (rack.tiles for result in results if result.is_open for rack in result.racks)
    pools = (result.pool for result in results if result.is_open)
    return Counter(t for place in (*racks, *pools) for t in place)


@pytest.mark.parametrize("seat", SEATS)
def test_a_seat_sees_only_open_and_own_tiles_of_events(seat: int | None) -> None:
    for event in (*EVENTS, *(event for change in CHANGES for event in change.applied.events)):
        assert Counter(tiles_in(see_event(event, seat))) == open_tiles_of(event, seat)


def test_an_event_that_hides_nothing_is_seen_as_it_is() -> None:
    hiding = set(KINDS) - set(get_args(OpenEvent))
    assert {type(event) for event in EVENTS} == set(KINDS)
    for event in EVENTS:
        for seat in SEATS:
            is_hidden_address = isinstance(event, PlayerKicked | RematchCreated) and seat is None
            is_hidden_address |= isinstance(event, PlayerKicked) and seat == event.seat
            hides = type(event) in hiding or event == RoundEnded(HIDDEN_RESULT) or is_hidden_address
            assert (see_event(event, seat) == event) == (not hides)


def rack(seat: int, tiles: str) -> Rack:
    return Rack(seat, parse_tiles(tiles))


def test_hidden_parts_of_events_are_shown_as_numbers_at_most() -> None:
    draws = (StartDraw(1, parse_tile("R4")),)
    deal = RoundStarted(1, draws, (2, 1), (rack(1, "R1 R2"), rack(2, "B1 B2")), parse_tiles("K1 K2 K3"))
    assert see_event(deal, 2) == RoundStartedView(1, draws, (2, 1), parse_tiles("B1 B2"), pool_count=3)
    assert see_event(deal, None) == RoundStartedView(1, draws, (2, 1), (), pool_count=3)
    drawn = TileDrawn(1, parse_tile("R4"))
    assert see_event(drawn, 1) == TilesDrawnView(1, 1, parse_tiles("R4"))
    assert see_event(drawn, 2) == see_event(drawn, None) == TilesDrawnView(1, 1, ())
    offered = TilesOffered(1, (Tile(4), Tile(5)))
    assert see_event(offered, 1) == TilesDrawnView(1, 2, parse_tiles("R4 R5"))
    assert see_event(offered, 2) == see_event(offered, None) == TilesDrawnView(1, 2, ())
    timed_out = TurnTimedOut(1, parse_tiles("R4 R5 R6"))
    assert see_event(timed_out, 1) == TurnTimedOutView(1, 3, parse_tiles("R4 R5 R6"))
    assert see_event(timed_out, 2) == see_event(timed_out, None) == TurnTimedOutView(1, 3, ())
    penalised = TurnPenalised(1, parse_tiles("R4 R5 R6"))
    assert see_event(penalised, 1) == TurnPenalisedView(1, 3, parse_tiles("R4 R5 R6"))
    assert see_event(penalised, 2) == see_event(penalised, None) == TurnPenalisedView(1, 3, ())


@pytest.mark.parametrize("seat", SEATS)
def test_no_view_shows_declined_initial_melds(seat: int | None) -> None:
    for event in DECLINED:
        assert see_event(event, seat) == see_event(replace(event, declined=False), seat)
    for game in GAMES:
        if isinstance(game.phase, Playing):
            declined = replace(game, phase=Playing(replace(round_of(game), declined=(1, 2))))
            assert see(declined, seat) == see(game, seat)


@pytest.mark.parametrize(
    ("step", "tiles"), [(Open(), ()), (Choosing(TWO), TWO), (Drawn(Tile(22)), (Tile(22),))], ids=["open", "two", "one"]
)
def test_only_the_player_sees_their_drawn_tiles_and_draft(step: Step, tiles: tuple[Tile, ...]) -> None:
    for seat in SEATS:
        view = see(a_game(step), seat, DRAFT)
        round_ = seen_round(view)
        assert round_
        assert (view.turn, round_.step, round_.shown_play) == (Turn(2, 1000, 7), type(step), SHOWN)
        assert (round_.tiles_drawn, round_.draft) == ((tiles, DRAFT) if seat == 2 else ((), None))


@pytest.mark.unmeasured
@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize("shown", RacksShown)
def test_racks_and_pool_are_seen_from_the_end_of_the_round_or_of_the_game_on(
    seat: int | None, shown: RacksShown
) -> None:
    rules = room(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2, racks_shown=shown)
    round_ends, game_ends = set(), set()
    for change in random_changes(3, 3, rules):
        game = change.applied.game
        for event in change.applied.events:
            match see_event(event, seat):
                case RoundEnded(result):
                    round_ends.add((result.racks, result.pool) == (round_of(game).racks, round_of(game).pool))
                case GameEnded(opened=opened):
                    game_ends.add(len(opened))
                    assert all(result.racks for result in see(game, seat).results) == (shown is not RacksShown.HIDDEN)
                case _:
                    pass
    assert round_ends == {shown is RacksShown.AFTER_ROUND}
    assert game_ends == {2 if shown is RacksShown.AFTER_GAME else 0}


def test_everyone_sees_a_draft_if_the_ruleset_shows_it() -> None:
    game = a_game(Open(), room(SABRA, draft_visibility=DraftVisibility.EVERYONE))
    for seat in SEATS:
        view = seen_round(see(game, seat, DRAFT))
        assert view
        assert view.draft == DRAFT


def test_no_view_has_the_draft_of_another_turn() -> None:
    game = a_game(Open(), room(SABRA, draft_visibility=DraftVisibility.EVERYONE))
    for seat in SEATS:
        view = seen_round(see(game, seat, replace(DRAFT, turn_revision=6)))
        assert view
        assert view.draft is None
        over = see(replace(game, phase=RoundOver(round_of(game))), seat, DRAFT)
        assert over.turn is None
        last = seen_round(over)
        assert last
        assert (last.draft, last.tiles_drawn, last.shown_play) == (None, (), None)


@pytest.mark.parametrize("spectators", Spectators)
def test_spectators_see_the_lobby_and_whether_they_see_more_is_an_option(spectators: Spectators) -> None:
    started = a_game(Open(), room(SABRA, spectators=spectators))
    assert is_open_to_spectators(replace(started, phase=Lobby()))
    assert is_open_to_spectators(started) == (spectators is Spectators.ALLOWED)


def test_the_tiles_to_choose_from_are_not_on_the_rack_yet() -> None:
    view = see(a_game(Choosing(TWO)), 2)
    assert view.players[1].tile_count == len(view.rack) == 5


def test_everyone_sees_the_open_part_of_a_game() -> None:
    for game in GAMES:
        views = [open_part(see(game, seat)) for seat in SEATS]
        assert len({repr(view) for view in views}) == 1
        check_open_part(views[0], game)


def test_spectators_do_not_see_the_rematch() -> None:
    for seat in SEATS:
        seen = "" if seat is None else "a" * 32
        over = Game(SABRA, phase=Aborted(None, "a" * 32))
        assert see(over, seat).rematch_game_id == seen
        assert see_event(RematchCreated("a" * 32), seat) == RematchCreated(seen)


def test_spectators_and_the_kicked_do_not_see_the_new_join_code() -> None:
    event = PlayerKicked(2, 1, "BCDFGH")
    seen = {seat: see_event(event, seat) for seat in (None, HOST, 1, 2)}
    hidden = PlayerKicked(2, 1)
    assert seen == {None: hidden, HOST: event, 1: event, 2: hidden}


def open_part(view: GameView) -> GameView:
    """Returns a view without the parts that only its own seat sees."""
    seen = seen_round(view)
    round_ = seen and replace(seen, tiles_drawn=(), draft=None)
    return replace(view, seat=None, rack=(), round=round_, rematch_game_id="")


def check_open_part(view: GameView, game: Game) -> None:
    round_ = round_of(game) if game.round else None
    assert (view.revision, view.ruleset, view.results) == (game.revision, game.ruleset, game.results)
    assert view.phase is type(game.phase)
    assert view.winners == (game.phase.winners if isinstance(game.phase, Finished) else ())
    assert view.abandoned == (isinstance(game.phase, Finished) and game.phase.abandoned)
    assert view.next_round_ms == (game.phase.next_round_ms if isinstance(game.phase, RoundOver) else None)
    assert view.turn == (game.phase.round.turn if isinstance(game.phase, Playing) else None)
    if round_ is None:
        assert (view.round_number, view.round, view.order, view.pool_count) == (0, None, (), 0)
        return
    assert (view.round_number, view.order, view.pool_count) == (round_.number, round_.order, len(round_.pool))
    sight = seen_round(view)
    assert sight
    assert (sight.table, sight.river, sight.passed) == (round_.table, round_.river, round_.passed)
    assert sight.last_chance == ((round_.last_chance or ()) if isinstance(game.phase, Playing) else ())
    racks = {rack.seat: rack for rack in round_.racks}
    for player, seen in zip(game.players, view.players, strict=True):
        own = racks.get(player.seat, Rack(player.seat, ()))
        expected = (player.seat, player.name, len(own.tiles), own.has_melded, player.total_points, player.resigned)
        absence = (player.bot or player.stand_in, player.timeouts_in_a_row, player.stand_in is not None)
        lobby = (player.is_ready, player.is_host, player.wants_abort, player.is_program)
        assert seen == PlayerView(*expected, *absence, player.time_left_ms, *lobby, player.deal_seed)


def test_the_games_looked_at_have_every_phase() -> None:
    assert {type(game.phase) for game in GAMES} == {Lobby, Playing, RoundOver, Finished}


def test_a_player_not_dealt_in_has_no_tiles() -> None:
    before = next(change.applied.game for change in CHANGES if isinstance(change.applied.game.phase, Playing))
    assert isinstance(before.phase, Playing)
    round_ = before.phase.round
    view = see(replace(before, phase=Playing(replace(round_, racks=round_.racks[:2]))), 3)
    assert view.rack == ()
    assert view.players[2] == replace(see(before, 3).players[2], tile_count=0, has_melded=False)
