"""The turns of the benchmark of validation: real positions late in a game, with turns of players and of the solver.

    python -m load.bench.validation_turns    rewrites load/corpus/data/validation.jsonl

A turn has some 60 tiles on the table and 14 on the rack, under the default rules, of a player who has melded. Legal
turns are modest turns of up to five tiles, as players make them, and the best turn that the solver finds. An illegal
turn is a legal turn with one mistake.
"""

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Final

from engine.effort import Budget
from engine.melding.analysis import Situation
from engine.melding.melds import ProposedMeld, as_proposed, read_meld
from engine.melding.play import Play
from engine.melding.rules import judge
from engine.melding.ruleset import SABRA
from engine.melding.solver import best_turn
from engine.tiles import JOKER
from load.corpus.positions import read as read_midgame
from load.corpus.positions import rules
from load.corpus.turns import LEGAL, MISTAKES, recorded
from load.corpus.turns import read as read_turns
from load.messages import to_send
from rummikub.v1 import validation_service_pb2 as pb
from service.codec import tiles as tile_codec
from service.codec import validation

FILE: Final = Path(__file__).resolve().parents[1] / "corpus" / "data" / "validation.jsonl"
TABLE_TILES: Final = range(55, 66)
RACK_TILES: Final = range(12, 17)
MOST_PLAYED: Final = 5
TRIES: Final = 40
"""Attempts to find a player's turn in a position."""
BUDGET: Final = Budget(nodes=20_000)
RULESET: Final = rules(SABRA.geometry_jokers)
TURNS: Final = 100
"""Legal turns; illegal ones; turns of a batch and of a short stream."""
MISTAKES_MEASURED: Final = {
    "not on the rack": ("foreign tile",),
    "tile missing": ("table tile taken",),
    "broken meld": ("tile left out", "meld cut", "tile misplaced"),
    "nothing played": ("nothing played",),
}
"""The kinds of illegal turns, and the mistakes of load.corpus.turns that lead to them."""


@dataclass(frozen=True, slots=True)
class MeasuredTurn:
    """A turn: the requests of a client, and the answers of the plain rules.

    Attributes:
        sort: LEGAL, or a key of MISTAKES_MEASURED.
        play: The play that the rules judge.
        request: The turn.
        melds: The melds of its table.
        answer: The answer to the turn.
        readings: The answer to the melds.
    """

    sort: str
    play: Play
    request: pb.ValidateTurnRequest
    melds: pb.ValidateMeldsRequest
    answer: pb.ValidateTurnResponse
    readings: pb.ValidateMeldsResponse


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns to measure: legal turns, illegal turns, and a mix of both, of equal number."""

    legal: tuple[MeasuredTurn, ...]
    illegal: tuple[MeasuredTurn, ...]
    mixed: tuple[MeasuredTurn, ...]


def read(path: Path = FILE) -> Turns:
    """Reads the turns of a file, and judges them with the plain rules."""
    turns = [_measured(turn.sort, turn.play, to_send(turn).turn, to_send(turn).melds) for turn in read_turns(path)]
    legal = tuple(turn for turn in turns if turn.sort == LEGAL)
    illegal = tuple(turn for turn in turns if turn.sort != LEGAL)
    rng = random.Random(1)
    legal_share = len(legal) * 3 // 5
    mixed = [*rng.sample(legal, legal_share), *rng.sample(illegal, len(legal) - legal_share)]
    return Turns(legal, illegal, tuple(rng.sample(mixed, len(mixed))))


def _measured(sort: str, play: Play, request: pb.ValidateTurnRequest, melds: pb.ValidateMeldsRequest) -> MeasuredTurn:
    readings = [
        tile_codec.encode_reading(read_meld(meld, play.ruleset), place) for place, meld in enumerate(play.table_after)
    ]
    answer = validation.encode_judgement(judge(play))
    return MeasuredTurn(sort, play, request, melds, answer, pb.ValidateMeldsResponse(melds=readings))


def batch_request(turns: Sequence[MeasuredTurn]) -> pb.BatchValidateTurnsRequest:
    """Returns turns as one batch."""
    return pb.BatchValidateTurnsRequest(turns=[turn.request for turn in turns])


def stream_requests(turns: Sequence[MeasuredTurn]) -> list[pb.StreamValidateTurnsRequest]:
    """Returns turns as the messages of a stream."""
    return [
        pb.StreamValidateTurnsRequest(turn=turn.request, correlation_id=str(place)) for place, turn in enumerate(turns)
    ]


# The file


def positions() -> list[Situation]:
    """Returns the positions of the corpus that have this size and can occur under the default rules."""
    found = []
    for position in read_midgame():
        situation = position.situation
        tiles = [t for meld in situation.table for t in meld.tiles]
        is_default = [*tiles, *situation.rack].count(JOKER) <= RULESET.geometry_jokers
        if len(tiles) in TABLE_TILES and len(situation.rack) in RACK_TILES and situation.has_melded and is_default:
            found.append(Situation(situation.table, situation.rack, has_melded=True, ruleset=RULESET))
    return found


def legal_plays(count: int) -> list[Play]:
    """Returns distinct legal plays, spread over all positions."""
    by_position = (_legal_plays(situation) for situation in positions())
    return list(islice(filter(None, chain.from_iterable(zip_longest(*by_position))), count))


def illegal_plays(plays: Sequence[Play], count: int) -> list[tuple[str, Play]]:
    """Returns plays with one mistake each, spread evenly over MISTAKES_MEASURED."""
    by_sort = ([(sort, play) for play in _spoiled(plays, names)] for sort, names in MISTAKES_MEASURED.items())
    return list(islice(filter(None, chain.from_iterable(zip_longest(*by_sort))), count))


def _legal_plays(situation: Situation) -> Iterator[Play]:
    """Yields distinct legal plays of a position: one of the solver, then some of players."""
    found = set()
    for table in (_best_table(situation), *_modest_tables(situation)):
        if table and table not in found:
            found.add(table)
            yield Play(situation.table, table, situation.rack, has_melded=True, ruleset=RULESET)


def _best_table(situation: Situation) -> tuple[ProposedMeld, ...]:
    turn = best_turn(situation, budget=BUDGET).turn
    return tuple(as_proposed(meld, RULESET) for meld in turn.table) if turn else ()


def _modest_tables(situation: Situation) -> Iterator[tuple[ProposedMeld, ...]]:
    from support.random_play import random_table  # noqa: PLC0415 - only the writer of the file needs the tests' random play

    for seed in range(TRIES):
        table = random_table(situation.table, situation.rack, has_melded=True, ruleset=RULESET, rng=random.Random(seed))
        if table:
            play = Play(situation.table, tuple(table), situation.rack, has_melded=True, ruleset=RULESET)
            if play.tiles_played.total() <= MOST_PLAYED:
                yield play.table_after


def _spoiled(plays: Sequence[Play], mistakes: Sequence[str]) -> Iterator[Play]:
    """Yields distinct plays with one mistake each: one of every play, then another one of every play."""
    ways = (_ways(play, [MISTAKES[name] for name in mistakes]) for play in plays)
    found: list[Play] = []
    for way in filter(None, chain.from_iterable(zip_longest(*ways))):
        if way not in found:
            found.append(way)
            yield way


def _ways(play: Play, mistakes: Sequence[Callable[[Play], Iterator[Play]]]) -> Iterator[Play]:
    by_mistake = (mistake(play) for mistake in mistakes)
    return (way for way in filter(None, chain.from_iterable(zip_longest(*by_mistake))) if judge(way).violations)


def main() -> int:
    """Writes the file."""
    legal = legal_plays(TURNS)
    plays = [*((LEGAL, play) for play in legal), *illegal_plays(legal, TURNS)]
    FILE.write_text("".join(f"{json.dumps(asdict(recorded(sort, play)))}\n" for sort, play in plays))
    return 0


if __name__ == "__main__":
    sys.exit(main())
