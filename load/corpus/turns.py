"""Turns of games to validate, with the engine's verdicts, for load tests to send and check.

    python -m load.corpus.turns    writes load/corpus/data/turns.jsonl anew

Legal turns are best turns of midgame positions. An illegal turn is a legal one with one mistake, as players make while
they drag tiles. The file has the verdicts, so a load generator needs neither solver nor rules. A changed solver may
find other equally good turns; the verdicts in the file stay valid.
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

from engine.effort import Budget
from engine.melding.analysis import Existence, Situation
from engine.melding.melds import Meld, MeldKind, NotAMeld, ProposedMeld, as_proposed, read_meld
from engine.melding.notation import format_table, parse_melds
from engine.melding.play import Play
from engine.melding.rules import judge
from engine.melding.solver import best_turn, has_turn
from engine.notation import format_rack, parse_rack
from engine.tiles import JOKER, without
from load.corpus.positions import Recorded, rules
from load.corpus.positions import read as read_midgame

TURNS: Final = Path(__file__).parent / "data" / "turns.jsonl"
SIZE: Final = 300
SEED: Final = 1
ILLEGAL: Final = 0.4
"""The number of illegal turns."""
BUDGET: Final = Budget(nodes=20_000)
LEGAL: Final = "legal"


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn as stored in the file.

    Attributes:
        sort: LEGAL, or the mistake: a key of MISTAKES.
        table: The table before the turn, in the notation.
        rack: The player's rack before the turn.
        proposal: The proposed table.
        has_melded: Whether the player had made the initial meld.
        game_jokers: The number of jokers in the game.
        can_play: Whether any legal turn exists.
        reasons: The violations in the order of reporting; empty for a legal turn.
        meld_reasons: The reasons why each meld of the proposal is invalid; empty for a valid one.
    """

    sort: str
    table: str
    rack: str
    proposal: str
    has_melded: bool
    game_jokers: int
    can_play: bool
    reasons: tuple[str, ...]
    meld_reasons: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """Returns a row of the file."""
        lists = {
            "reasons": tuple(row["reasons"]),
            "meld_reasons": tuple(tuple(reasons) for reasons in row["meld_reasons"]),
        }
        return cls(**(row | lists))

    @property
    def play(self) -> Play:
        """Returns the turn as the rules judge it."""
        ruleset = rules(self.game_jokers)
        table = tuple(read_meld(meld, ruleset) for meld in parse_melds(self.table))
        melds = tuple(meld for meld in table if isinstance(meld, Meld))
        return Play(melds, parse_melds(self.proposal), parse_rack(self.rack), self.has_melded, ruleset)


def read(path: Path = TURNS) -> tuple[RecordedTurn, ...]:
    """Returns the turns of a file."""
    return tuple(RecordedTurn.of(json.loads(line)) for line in path.read_text().splitlines())


def recorded(sort: str, play: Play) -> RecordedTurn:
    """Returns a turn with the engine's verdicts in its stored form, without kinds that the tiles determine."""
    play = replace(play, table_after=parse_melds(format_table(play.table_after)))
    situation = Situation(play.table_before, play.rack, play.has_melded, play.ruleset)
    existence = has_turn(situation)
    if existence is Existence.UNKNOWN:
        raise AssertionError(f"the solver cannot say whether {situation} can be played")
    readings = [read_meld(meld, play.ruleset) for meld in play.table_after]
    return RecordedTurn(
        sort=sort,
        table=format_table(play.table_before),
        rack=format_rack(play.rack),
        proposal=format_table(play.table_after),
        has_melded=play.has_melded,
        game_jokers=play.ruleset.geometry_jokers,
        can_play=existence is Existence.YES,
        reasons=tuple(violation.reason.name for violation in judge(play).violations),
        meld_reasons=tuple(
            tuple(reason.name for reason in reading.reasons) if isinstance(reading, NotAMeld) else ()
            for reading in readings
        ),
    )


def turns(size: int, seed: int) -> Iterator[RecordedTurn]:
    """Returns a number of turns from positions all over the midgame corpus, with about equally many of each mistake."""
    rng = random.Random(seed)
    made: Counter[str] = Counter()
    midgame = read_midgame()
    plays = filter(None, map(_legal_play, rng.sample(midgame, len(midgame))))
    for play in islice(plays, size):
        spoiled = _spoiled(play, made, rng) if rng.random() < ILLEGAL else None
        sort, turn = spoiled or (LEGAL, play)
        made[sort] += 1
        yield recorded(sort, turn)


def _legal_play(position: Recorded) -> Play | None:
    """Returns the best turn of a position, if there is one."""
    situation = position.situation
    turn = best_turn(situation, budget=BUDGET).turn
    if turn is None:
        return None
    proposal = tuple(as_proposed(meld, situation.ruleset) for meld in turn.table)
    return Play(situation.table, proposal, situation.rack, situation.has_melded, situation.ruleset)


def _spoiled(play: Play, made: Counter[str], rng: random.Random) -> tuple[str, Play] | None:
    """Returns a play with the rarest mistake so far among those possible in it, made in a random way."""
    for sort in sorted(MISTAKES, key=lambda sort: made[sort]):
        ways = [way for way in MISTAKES[sort](play) if judge(way).violations]
        if ways:
            return sort, rng.choice(ways)
    return None


# Mistakes. Each function yields all ways to make it in a play; some may be legal by chance.


def _foreign_tile(play: Play) -> Iterator[Play]:
    """Lays a tile that the rack does not have."""
    for played in sorted(play.tiles_played):
        yield replace(play, rack=tuple(t for t in play.rack if t != played))


def _table_tile_taken(play: Play) -> Iterator[Play]:
    """Takes the last tile of a meld of the table to the rack."""
    for place, meld in enumerate(play.table_after):
        if len(meld.tiles) > 3 and meld.tiles[-1] in play.tiles_before and not meld.declared:
            yield _with_melds(play, place, replace(meld, tiles=meld.tiles[:-1]))


def _tile_left_out(play: Play) -> Iterator[Play]:
    """Leaves a gap in a run: the tile in its middle is not laid."""
    for place, meld in enumerate(play.table_after):
        middle = len(meld.tiles) // 2
        if meld.kind is MeldKind.RUN and len(meld.tiles) > 3 and JOKER not in meld.tiles:
            yield _with_melds(play, place, replace(meld, tiles=meld.tiles[:middle] + meld.tiles[middle + 1 :]))


def _meld_cut(play: Play) -> Iterator[Play]:
    """Cuts a meld into two parts, one of them too short."""
    for place, meld in enumerate(play.table_after):
        if not meld.declared:
            parts = (meld.tiles[:2], meld.tiles[2:])
            yield _with_melds(play, place, *(ProposedMeld(tiles) for tiles in parts))


def _tile_misplaced(play: Play) -> Iterator[Play]:
    """Adds a tile of the rack to a meld where it does not belong."""
    for stray in sorted(set(without(play.rack, play.tiles_played.elements())) - {JOKER}):
        for place, meld in enumerate(play.table_after):
            yield _with_melds(play, place, replace(meld, tiles=(*meld.tiles, stray)))


def _too_few_points(play: Play) -> Iterator[Play]:
    """Lays melds of the rack as an initial meld below the threshold."""
    table = tuple(as_proposed(meld, play.ruleset) for meld in play.table_before)
    for meld in play.new_melds:
        if meld.points < play.ruleset.initial_meld_threshold and not without(meld.tiles, play.rack):
            yield replace(play, table_after=(*table, as_proposed(meld, play.ruleset)), has_melded=False)


def _table_changed_too_early(play: Play) -> Iterator[Play]:
    """Rearranges the table for a player who has not melded."""
    if play.changed_melds:
        yield replace(play, has_melded=False)


def _nothing_played(play: Play) -> Iterator[Play]:
    """Leaves the table unchanged."""
    yield replace(play, table_after=tuple(as_proposed(meld, play.ruleset) for meld in play.table_before))


def _with_melds(play: Play, place: int, *melds: ProposedMeld) -> Play:
    """Returns the play with other melds in the place of one."""
    after = play.table_after
    return replace(play, table_after=(*after[:place], *melds, *after[place + 1 :]))


MISTAKES: Final[dict[str, Callable[[Play], Iterator[Play]]]] = {
    "foreign tile": _foreign_tile,
    "table tile taken": _table_tile_taken,
    "tile left out": _tile_left_out,
    "meld cut": _meld_cut,
    "tile misplaced": _tile_misplaced,
    "too few points": _too_few_points,
    "table changed too early": _table_changed_too_early,
    "nothing played": _nothing_played,
}


def main() -> int:
    """Writes the turns."""
    parser = argparse.ArgumentParser(description="Write turns of games with the engine's verdicts, from a seed.")
    parser.add_argument("--size", type=int, default=SIZE, help=f"how many turns ({SIZE})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"the seed ({SEED})")
    parser.add_argument("--to", type=Path, default=TURNS, help=f"the file ({TURNS.name})")
    chosen = parser.parse_args()
    rows = [json.dumps(asdict(turn)) for turn in turns(chosen.size, chosen.seed)]
    chosen.to.write_text("\n".join(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
