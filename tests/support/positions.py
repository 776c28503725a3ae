"""Builds games from positions as text, and applies actions to them."""

import copy
from typing import TypeVar

from engine.actions import Action, Join
from engine.game import Game, Playing
from engine.melding.actions import PlayTiles
from engine.melding.analysis import Analysis
from engine.melding.deal import turn_order
from engine.melding.game import round_of
from engine.melding.melds import Meld, read_meld
from engine.melding.notation import format_position, parse_melds, parse_position, position_of
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import SABRA
from engine.melding.solver import EXACT
from engine.melding.table import melds_of
from engine.notation import parse_tiles
from engine.replay import advance
from engine.seats import Player, Turn
from engine.turns import Applied, apply, create
from engine.violations import Reason, Refused
from support.rooms import Rules, parts

T = TypeVar("T")

NOW = 1_000_000
NAMES = ("Ada", "Ben", "Cleo", "Dan")


def game_at(
    position: str,
    ruleset: Rules = SABRA,
    starter: int = 1,
    passed: tuple[int, ...] = (),
    river: str = "",
) -> Game:
    """Returns a game in its first round at a position, whose tiles need not be the full tile set."""
    parsed, (rules, settings) = parse_position(position), parts(ruleset)
    sent = melds_of(parsed.table)
    table = tuple(meld for meld in (read_meld(p, rules) for p in sent) if isinstance(meld, Meld))
    assert len(table) == len(sent), "the table is not valid"
    deadline = NOW + 120_000 if settings.turn_time_limit_seconds else None
    order = turn_order(tuple(rack.seat for rack in parsed.racks), starter, rules.turn_direction)
    turn = Turn(parsed.turn_seat, deadline)
    round_ = Round(1, order, table, parsed.racks, parsed.pool, turn, passed, parse_tiles(river))
    players = tuple(Player(rack.seat, NAMES[rack.seat - 1]) for rack in parsed.racks)
    return Game(rules, settings, 10, players, Playing(round_))


def lobby(*names: str, ruleset: Rules = SABRA) -> Game:
    """Returns a game in the lobby with players. The first one is the host."""
    game = create(*parts(ruleset)).game
    for name in names:
        game = do(game, Join(name, is_host=not game.players)).game
    return game


def do(game: Game, action: Action, now_ms: int = NOW, analysis: Analysis = EXACT) -> Applied:
    """Applies an action that must be accepted, and checks the revision and the replay of its events."""
    before = copy.deepcopy(game)
    answer = apply(game, action, now_ms, analysis)
    assert isinstance(answer, Applied), answer
    assert game == before
    assert answer.game.revision == game.revision + 1
    assert advance(game, answer.events) == answer.game
    return answer


def refusal(game: Game, action: Action, now_ms: int = NOW, analysis: Analysis = EXACT) -> Refused:
    """Returns the refusal of an action, which must leave the game unchanged."""
    before = copy.deepcopy(game)
    answer = apply(game, action, now_ms, analysis)
    assert isinstance(answer, Refused), answer
    assert game == before
    return answer


def only_reason(game: Game, action: Action, now_ms: int = NOW, analysis: Analysis = EXACT) -> Reason:
    """Returns the only reason of a refusal."""
    (violation,) = refusal(game, action, now_ms, analysis).violations
    return violation.reason


def position(game: Game) -> str:
    """Returns the position of the round as text."""
    return format_position(position_of(round_of(game)))


def play(seat: int, table: str, *, knocks: bool = False) -> PlayTiles:
    """Returns a play that leaves the table as given."""
    return PlayTiles(seat, parse_melds(table), knocks=knocks)


def is_a(value: object, kind: type[T]) -> T:
    """Returns a value, which must be of a type."""
    assert isinstance(value, kind)
    return value
