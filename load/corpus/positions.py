"""Positions of whole games, from seeds, for measuring analysis.

    python -m load.corpus.positions              writes data/midgame.jsonl anew: 3,000 positions, balanced by kind
    python -m load.corpus.positions --seed 9000  writes others, to a file named by --to

Two to four players play by the default rules, with zero, two or four jokers. They know the best turn, but have
different temperaments: some draw although they could play, some hold tiles back, some play for value. So tables and
racks vary.
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Final

from rich.progress import track

from engine.actions import Action, Join, StartGame
from engine.deal import Shuffle
from engine.effort import Budget
from engine.game import Game, Playing
from engine.melding.actions import DrawTile, Pass, PlayTiles
from engine.melding.analysis import Situation
from engine.melding.game import round_of, rules_of
from engine.melding.melds import Meld, as_proposed, read_meld
from engine.melding.notation import Position, format_position, parse_position, position_of
from engine.melding.round import MeldingRound as Round
from engine.melding.ruleset import SABRA, Ruleset, with_options
from engine.melding.solver import Objective, best_turn
from engine.melding.table import melds_of, tiles_on
from engine.seats import HOST
from engine.tiles import JOKER
from engine.turns import apply, create
from engine.violations import Refused

MIDGAME: Final = Path(__file__).parent / "data" / "midgame.jsonl"
SIZE: Final = 3_000
GAME_JOKERS: Final = (2, 0, 2, 4)
PLAYERS: Final = ("Ada", "Ben", "Cleo", "Dan")
PLAYERS_BUDGET: Final = Budget(nodes=100_000)
"""Enough for nearly every turn; otherwise the player plays the best turn found."""


class Phase(Enum):
    """The progress of a round, by the tiles on the table."""

    EARLY = "early"
    MIDDLE = "middle"
    LATE = "late"


EARLY_TILES: Final = 21
"""With fewer tiles on the table, the phase is early."""

MIDDLE_TILES: Final = 51
"""With fewer tiles on the table, the phase is middle."""


def phase_of(tiles_on_table: int) -> Phase:
    """Returns the phase of a round with a number of tiles on its table."""
    if tiles_on_table < EARLY_TILES:
        return Phase.EARLY
    return Phase.MIDDLE if tiles_on_table < MIDDLE_TILES else Phase.LATE


@dataclass(frozen=True, slots=True)
class Recorded:
    """A position as stored in a file.

    Attributes:
        position: In the notation, with only the rack of the player to move and no pool.
        phase: The value of a Phase.
        jokers: The number of jokers on the table and that rack.
        game_jokers: The number of jokers in the game.
        players: The number of players.
    """

    position: str
    phase: str
    jokers: int
    game_jokers: int
    players: int

    @property
    def ruleset(self) -> Ruleset:
        """Returns the rules of the game."""
        return rules(self.game_jokers)

    @property
    def situation(self) -> Situation:
        """Returns the situation of the player to move."""
        position, ruleset = parse_position(self.position), self.ruleset
        melds = tuple(read_meld(meld, ruleset) for meld in melds_of(position.table))
        (rack,) = position.racks
        return Situation(tuple(meld for meld in melds if isinstance(meld, Meld)), rack.tiles, rack.has_melded, ruleset)


def rules(jokers: int) -> Ruleset:
    """Returns the default rules with a number of jokers."""
    return with_options(SABRA, {"geometry_jokers": jokers})


def read(path: Path = MIDGAME) -> tuple[Recorded, ...]:
    """Returns the positions of a file."""
    return tuple(Recorded(**json.loads(line)) for line in path.read_text().splitlines())


def positions(seeds: Iterable[int], game_jokers: Sequence[int] = GAME_JOKERS) -> Iterator[Recorded]:
    """Yields the positions of every turn of games, one game per seed, in order.

    Args:
        seeds: The seeds.
        game_jokers: The numbers of jokers, which games have in turn.
    """
    for seed in seeds:
        jokers = game_jokers[seed % len(game_jokers)]
        for round_ in _rounds(seed, jokers):
            yield _recorded(round_, jokers)


def balanced(found: Iterable[Recorded], size: int) -> Iterator[Recorded]:
    """Returns a selection of positions: equally many of each phase, with and without jokers."""
    most = -(-size // (2 * len(Phase)))
    taken: Counter[tuple[str, bool]] = Counter()
    for recorded in found:
        sort = recorded.phase, recorded.jokers > 0
        if taken[sort] < most and taken.total() < size:
            taken[sort] += 1
            yield recorded
        if taken.total() == size:
            return


def _recorded(round_: Round, game_jokers: int) -> Recorded:
    mover = round_.rack(round_.turn.seat)
    position = replace(position_of(round_), racks=(mover,), pool=())
    tiles = tiles_on(round_.table)
    jokers = (*tiles, *mover.tiles).count(JOKER)
    return Recorded(_text(position), phase_of(len(tiles)).value, jokers, game_jokers, len(round_.racks))


def _text(position: Position) -> str:
    return format_position(position)


# Games


@dataclass(frozen=True, slots=True)
class Temper:
    """How a player plays.

    Attributes:
        reluctance: How often they draw although they may be able to play.
        holding: How often they consider only a part of their rack.
        objective: Their objective.
    """

    reluctance: float
    holding: float
    objective: Objective


def _rounds(seed: int, jokers: int) -> Iterator[Round]:
    """Yields the round of a game before each of its turns."""
    rng = random.Random(seed)
    tempers = {seat: _temper(rng) for seat in range(1, len(PLAYERS) + 1)}
    game = _started(seed, rules(jokers), rng)
    while isinstance(game.phase, Playing):
        round_ = round_of(game)
        yield round_
        game = _do(game, _action(game, round_, tempers, rng))


def _temper(rng: random.Random) -> Temper:
    return Temper(
        reluctance=rng.choice((0.0, 0.2, 0.5)),
        holding=rng.choice((0.0, 0.3, 0.8)),
        objective=rng.choice(tuple(Objective)),
    )


def _started(seed: int, ruleset: Ruleset, rng: random.Random) -> Game:
    game = create(ruleset).game
    players = 2 + seed // len(GAME_JOKERS) % 3
    for name in PLAYERS[:players]:
        game = _do(game, Join(name))
    tiles = ruleset.tiles(players)
    shuffle = Shuffle(tuple(rng.sample(tiles, len(tiles))), tuple(rng.sample(tiles, len(tiles))))
    return _do(game, StartGame(HOST, shuffle))


def _do(game: Game, action: Action) -> Game:
    applied = apply(game, action, 0)
    if isinstance(applied, Refused) or applied.violations:
        raise AssertionError(f"{action} was refused: {applied}")
    return applied.game


def _action(game: Game, round_: Round, tempers: Mapping[int, Temper], rng: random.Random) -> Action:
    """Returns the action of the player to move."""
    seat = round_.turn.seat
    temper, rack = tempers[seat], round_.rack(seat)
    otherwise: Action = DrawTile(seat) if round_.pool else Pass(seat)
    if round_.pool and rng.random() < temper.reluctance:
        return otherwise
    tiles = rack.tiles
    if rack.has_melded and rng.random() < temper.holding:
        tiles = tuple(sorted(rng.sample(tiles, rng.randint(1, len(tiles)))))
    situation = Situation(melds_of(round_.table), tiles, rack.has_melded, rules_of(game))
    turn = best_turn(situation, temper.objective, PLAYERS_BUDGET).turn
    return PlayTiles(seat, tuple(as_proposed(meld, SABRA) for meld in turn.table)) if turn else otherwise


# File


def main() -> int:
    """Writes positions."""
    parser = argparse.ArgumentParser(description="Write positions of games, from seeds.")
    parser.add_argument("--size", type=int, default=SIZE, help=f"how many positions ({SIZE})")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first game; each next one is one higher (0)")
    parser.add_argument("--to", type=Path, default=MIDGAME, help=f"the file ({MIDGAME.name})")
    chosen = parser.parse_args()
    found = balanced(positions(count(chosen.seed)), chosen.size)
    rows = [json.dumps(asdict(recorded)) for recorded in track(found, "Playing", total=chosen.size)]
    chosen.to.parent.mkdir(parents=True, exist_ok=True)
    chosen.to.write_text("\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
