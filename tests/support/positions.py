"""Games for tests, from the text of a position, and actions on them."""

import copy
from typing import TypeVar

from engine.actions import Action, Join, PlayTiles
from engine.analysis import Analysis
from engine.game import Game, Player, Playing, Round, Turn, turn_order
from engine.melds import Meld, read_meld
from engine.notation import format_position, parse_position, parse_table, parse_tiles, position_of
from engine.replay import advance
from engine.ruleset import SABRA, Ruleset
from engine.turns import EXACT, Applied, apply, create
from engine.violations import Reason, Refused

T = TypeVar("T")

NOW = 1_000_000
NAMES = ("Ada", "Ben", "Cleo", "Dan")


def game_at(
    position: str,
    ruleset: Ruleset = SABRA,
    starter: int = 1,
    passed: tuple[int, ...] = (),
    river: str = "",
) -> Game:
    """A game in its first round, at a position; its tiles need not be the full tile set."""
    parsed = parse_position(position)
    table = tuple(meld for meld in (read_meld(p, ruleset) for p in parsed.table) if isinstance(meld, Meld))
    assert len(table) == len(parsed.table), "the table is not valid"
    deadline = NOW + 120_000 if ruleset.turn_time_limit_seconds else None
    order = turn_order(tuple(rack.seat for rack in parsed.racks), starter, ruleset.turn_direction)
    turn = Turn(parsed.turn_seat, deadline)
    round_ = Round(1, order, table, parsed.racks, parsed.pool, turn, passed, parse_tiles(river))
    players = tuple(Player(rack.seat, NAMES[rack.seat - 1]) for rack in parsed.racks)
    return Game(ruleset, 10, players, Playing(round_))


def lobby(*names: str, ruleset: Ruleset = SABRA) -> Game:
    """A lobby with players."""
    game = create(ruleset).game
    for name in names:
        game = do(game, Join(name)).game
    return game


def do(game: Game, action: Action, now_ms: int = NOW, analysis: Analysis = EXACT) -> Applied:
    """An action that must be accepted: a revision more, and the same game from its events."""
    before = copy.deepcopy(game)
    answer = apply(game, action, now_ms, analysis)
    assert isinstance(answer, Applied), answer
    assert game == before
    assert answer.game.revision == game.revision + 1
    assert advance(game, answer.events) == answer.game
    return answer


def refusal(game: Game, action: Action, now_ms: int = NOW, analysis: Analysis = EXACT) -> Refused:
    """The answer to an action that must be refused: the game stays as it was."""
    before = copy.deepcopy(game)
    answer = apply(game, action, now_ms, analysis)
    assert isinstance(answer, Refused), answer
    assert game == before
    return answer


def only_reason(game: Game, action: Action, now_ms: int = NOW, analysis: Analysis = EXACT) -> Reason:
    """The one reason of a refusal."""
    (violation,) = refusal(game, action, now_ms, analysis).violations
    return violation.reason


def position(game: Game) -> str:
    """The position of the round as text."""
    assert game.round is not None
    return format_position(position_of(game.round))


def play(seat: int, table: str) -> PlayTiles:
    """A play so that the table lies so."""
    return PlayTiles(seat, parse_table(table))


def is_a(value: object, kind: type[T]) -> T:
    """A value that must be of a type."""
    assert isinstance(value, kind)
    return value
