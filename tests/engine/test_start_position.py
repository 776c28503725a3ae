"""Games that begin with a position in place of a deal."""

import random
from dataclasses import replace

import pytest

from engine.actions import Join, StartGame, StartNextRound
from engine.deal import ImpossibleDealError
from engine.game import Game, Playing, RoundOver
from engine.melding.actions import PlayTiles
from engine.melding.bots import choose_action
from engine.melding.deal import start_of
from engine.melding.events import RoundStarted
from engine.melding.game import round_of
from engine.melding.notation import parse_table
from engine.melding.position import Position, legal_table, position_problems
from engine.melding.presets import PRESETS
from engine.melding.ruleset import SABRA, MatchEnd, Preset, Ruleset, Teams, TurnDirection
from engine.melding.table import tiles_on
from engine.melding.views import RoundStartedView
from engine.notation import Piece, parse_racks, parse_tiles
from engine.record import RecordError, record_of, replayed
from engine.record_text import format_record, parse_record
from engine.replay import replay
from engine.seats import HOST, BotLevel
from engine.sight import see, see_event
from engine.tiles import in_order
from engine.turns import Applied, create
from engine.violations import Reason
from support.positions import NAMES, NOW, do, is_a, only_reason
from support.random_play import position_in, random_changes, random_shuffle
from support.soak import few_of

RUN = "[R1 R2 R3]"
CHANCE = random.Random(1)


def at(
    table: str = RUN, racks: str = "1*{B1 B2} 3{K1}", pool: str = "", turn: int = 3, rules: Ruleset = SABRA
) -> Position:
    """Returns a position; without a pool, the rest of the tiles are shuffled."""
    read = legal_table(parse_table(table), rules)
    assert read is not None
    return Position(read, parse_racks(Piece(racks)), parse_tiles(pool) or None, turn)


def lobby_of(position: Position, rules: Ruleset = SABRA) -> list[Applied]:
    """Returns the changes of a lobby whose players have taken the seats of a position."""
    changes = [create(rules, position_seats=position.seats)]
    for seat in position.seats:
        changes.append(do(changes[-1].game, Join(NAMES[seat - 1], seat=seat)))
    return changes


def start(position: Position, rules: Ruleset = SABRA) -> RoundStarted:
    return start_of(position, rules, tuple(CHANCE.sample(rules.tiles(len(position.racks)), len(rules.tiles(2)))))


def begun(position: Position, rules: Ruleset = SABRA) -> list[Applied]:
    """Returns the changes of a game up to its start with a position."""
    changes = lobby_of(position, rules)
    return [*changes, do(changes[-1].game, StartGame(HOST, start(position, rules)))]


def test_the_first_round_is_the_position_and_the_rest_of_the_tiles_are_shuffled() -> None:
    position = at()
    game = begun(position)[-1].game
    round_ = round_of(game)
    assert (round_.table, round_.racks, round_.order) == (position.table, position.racks, (3, 1))
    assert round_.turn.seat == 3
    assert round_.tiles == SABRA.tiles(2)
    assert round_.pool != in_order(round_.pool)


def test_a_pool_that_is_given_is_drawn_in_its_order() -> None:
    rest = start(at()).pool
    game = begun(replace(at(), pool=rest[::-1]))[-1].game
    assert round_of(game).pool == rest[::-1]


def test_only_the_seats_of_the_position_are_taken_and_all_of_them_must_be() -> None:
    created = create(SABRA, position_seats=(1, 3)).game
    assert only_reason(created, Join("Ben", seat=2)) is Reason.SEAT_TAKEN
    alone = do(created, Join("Ada")).game
    assert only_reason(alone, StartGame(HOST, start(at()))) is Reason.TOO_FEW_PLAYERS
    both = do(alone, Join("Cleo")).game
    assert [player.seat for player in both.players] == [1, 3]
    assert only_reason(both, Join("Dan")) is Reason.GAME_FULL


def test_the_order_of_turns_is_that_of_the_rules() -> None:
    rules = replace(SABRA, turn_direction=TurnDirection.COUNTERCLOCKWISE)
    racks = "1*{B1} 2{B2} 4{B3}"
    assert start(at(racks=racks, turn=2)).order == (2, 4, 1)
    assert start(at(racks=racks, turn=2, rules=rules), rules).order == (2, 1, 4)


@pytest.mark.parametrize(
    ("position", "parts"),
    [
        (at(racks="1*{B1}", turn=1), ["seats"]),
        (at(racks="1*{B1} 2{B2} 3{B3} 4{B4} 5{B5}", turn=1), ["seats", "seats"]),
        (at(racks="3{K1} 1*{B1}"), ["seats"]),
        (replace(at(), racks=at().racks * 2), ["seats"]),
        (at(turn=2), ["turn_seat"]),
        (at(racks="1*{} 3{K1}"), ["seats[0].rack"]),
        (at(racks="1{B1} 3{K1}"), ["seats"]),
        (at(table="."), ["seats"]),
        (at(racks="1*{R1 B1} 3{R1 K1}"), ["seats[1].rack"]),
        (at(f"{RUN} | {RUN} | {RUN}"), ["table"]),
        (at(pool="K1 K1"), ["pool", "pool"]),
        (at(pool="K2 K3"), ["pool"]),
        (at(table=".", racks="1{B1 B1 B1} 3{}", turn=4), ["turn_seat", "seats[1].rack", "seats[0].rack"]),
    ],
)
def test_all_problems_of_an_impossible_position_are_named(position: Position, parts: list[str]) -> None:
    problems = position_problems(position, SABRA)
    assert [problem.part for problem in problems] == parts
    game = lobby_of(at())[-1].game
    impossible = RoundStarted(1, (), (3, 1), position.racks, position.pool or (), position.table)
    with pytest.raises(ImpossibleDealError):
        do(game, StartGame(HOST, impossible))


def test_without_an_initial_meld_it_does_not_matter_who_has_melded() -> None:
    rules = replace(SABRA, initial_meld_needed=False)
    assert not position_problems(at(racks="1{B1} 3{K1}"), rules)
    assert round_of(begun(at(racks="1{B1} 3{K1}"), rules)[-1].game).rack(1).has_melded


def test_pairs_are_four_players() -> None:
    rules = replace(SABRA, teams=Teams.PAIRS)
    problems = position_problems(at(rules=rules), rules)
    assert [(problem.part, problem.text) for problem in problems] == [("seats", "pairs are 4 players")]


@pytest.mark.parametrize(
    ("table", "rules"), [("[R1 R2 B3]", SABRA), ("0,0[R1 R2 R3]", SABRA), (RUN, PRESETS[Preset.CROSS])]
)
def test_a_table_is_legal_and_of_the_layout_of_the_rules(table: str, rules: Ruleset) -> None:
    assert legal_table(parse_table(table), rules) is None


def test_a_position_cannot_begin_a_game_that_is_dealt_or_a_later_round() -> None:
    dealt = create(SABRA).game
    for name in NAMES[:2]:
        dealt = do(dealt, Join(name)).game
    with pytest.raises(ImpossibleDealError, match="only the first round"):
        do(dealt, StartGame(HOST, start(at(racks="1*{B1} 2{K1}", turn=1))))
    with pytest.raises(ImpossibleDealError, match="expected a position"):
        do(lobby_of(at())[-1].game, StartGame(HOST, random_deal(lobby_of(at())[-1].game)))
    with pytest.raises(ImpossibleDealError, match="no start draw"):
        do(lobby_of(at())[-1].game, StartGame(HOST, replace(start(at()), number=2)))


def random_deal(game: Game) -> RoundStarted:
    plain = replace(game, position_seats=())
    started = do(plain, StartGame(HOST, random_shuffle(SABRA, CHANCE, len(game.players))))
    return is_a(started.events[0], RoundStarted)


def test_the_next_round_is_dealt() -> None:
    rules = replace(SABRA, match_end=MatchEnd.FIXED_ROUNDS, match_rounds=2)
    game = begun(at(racks="1*{R4} 3{K1}", turn=1, rules=rules), rules)[-1].game
    over = do(game, PlayTiles(1, parse_table("[R1 R2 R3 R4]"))).game
    assert isinstance(over.phase, RoundOver)
    after = do(over, StartNextRound(1, random_shuffle(rules, CHANCE, 2))).game
    assert (round_of(after).table, len(round_of(after).rack(3).tiles)) == ((), 14)
    with pytest.raises(ImpossibleDealError, match="only the first round"):
        do(over, StartNextRound(1, replace(start(at()), number=2)))


def test_others_see_the_table_and_the_sizes_of_the_racks() -> None:
    changes = begun(at())
    started = is_a(changes[-1].events[0], RoundStarted)
    for seat, rack in ((1, "B1 B2"), (3, "K1"), (None, "")):
        held = ((1, 2, True), (3, 1, False))
        expected = RoundStartedView(1, (), (3, 1), parse_tiles(rack), len(started.pool), at().table, held)
        assert see_event(started, seat) == expected
    assert see(changes[0].game, None).position_seats == (1, 3)


@pytest.mark.parametrize("name", [Preset.SABRA, Preset.CROSS, Preset.TWIST])
@pytest.mark.parametrize("seed", few_of(range(3), 1))
def test_a_game_that_begins_where_another_one_was_is_played_recorded_and_replayed(name: Preset, seed: int) -> None:
    rules = PRESETS[name]
    positions = [change.applied.game for change in random_changes(seed, 3, rules) if change.applied.game.round]
    played = [game for game in positions if isinstance(game.phase, Playing) and tiles_on(round_of(game).table)]
    position = position_in(played[len(played) // 2])
    assert position_problems(position, rules) == ()
    changes = begun(position, rules)
    while isinstance(changes[-1].game.phase, Playing) and len(changes) < 30:
        game = changes[-1].game
        seat = round_of(game).turn.seat
        changes.append(do(game, choose_action(see(game, seat), BotLevel.EASY)))
    assert replay(change.events for change in changes) == changes[-1].game
    record = record_of((change.game.revision, NOW, change.events) for change in changes)
    assert parse_record(format_record(record)) == record
    assert [played.after for played in replayed(record)][-1].round == changes[-1].game.round


def test_a_record_with_an_impossible_position_is_refused() -> None:
    record = record_of((change.game.revision, NOW, change.events) for change in begun(at()))
    text = format_record(record)
    assert f" / {RUN}" in text
    with pytest.raises(RecordError, match="tile set has no more"):
        list(replayed(parse_record(text.replace(f" / {RUN}", f" / {RUN} | [R1 R2 R3]"))))
    with pytest.raises(ValueError, match="is no legal table"):
        parse_record(text.replace(f" / {RUN}", " / [R1 R2]"))
