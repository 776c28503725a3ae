"""The skill of bots: what the weaker levels overlook in a turn, as people do.

All levels search alike. A weaker one does so for what it notices: some tiles of its rack, some melds of the table. An
oversight lasts for the turn. It depends on the turn and on what is overlooked, so the same view gives the same action,
and another turn another chance.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import starmap
from typing import Final

from engine.seats import BotLevel
from engine.tiles import Tile
from engine.views import GameView


@dataclass(frozen=True, slots=True)
class Skill:
    """What a level notices, in percent.

    Attributes:
        rack: Of the tiles of its rack.
        table: Of the melds of the table that it may take apart or add to.
        best: In how many turns it lays the best play that it notices, and not the smallest.
    """

    rack: int
    table: int
    best: int = 100

    def sharper(self) -> "Skill":
        """Returns the skill of a closer look, which notices the same things and others."""
        return replace(
            self, rack=min(_PERCENT, self.rack + _CLOSER), table=min(_PERCENT, self.table + _CLOSER), best=_PERCENT
        )


_PERCENT: Final = 100
_CLOSER: Final = 10
"""How much more a closer look notices, in percent."""
ALL: Final = Skill(_PERCENT, _PERCENT)
"""The skill of a level that overlooks nothing."""
Skills = Mapping[BotLevel, Skill]
"""The skills of the levels that overlook something."""


def skills(*rates: tuple[int, ...]) -> Skills:
    """Returns the skills of the levels from BEGINNER on, given as (rack, table, best); levels beyond overlook nothing.

    `best` may be left out.
    """
    return dict(zip(BotLevel, starmap(Skill, rates), strict=False))


def is_noticed(view: GameView, thing: Iterable[int], percent: int) -> bool:
    """Returns whether the viewer notices a thing in the turn in progress, at a rate in percent."""
    return _chance(view, thing) % _PERCENT < percent


def any_of(view: GameView, tiles: Sequence[Tile]) -> Tile:
    """Returns any of some tiles."""
    return tiles[_chance(view, tiles) % len(tiles)]


def shuffled(view: GameView, tiles: Sequence[Tile], number: int) -> list[Tile]:
    """Returns tiles in an order that is as good as random for each turn and number."""
    seed = _chance(view, (number,))
    places = sorted(range(len(tiles)), key=lambda place: sha256(f"{seed} {place}".encode()).digest())
    return [tiles[place] for place in places]


def _chance(view: GameView, thing: Iterable[int]) -> int:
    """Returns a number that is as good as random for each turn and thing, and known to the viewer alone."""
    key = view.round_number, view.turn and view.turn.revision, view.seat, view.rack, *thing
    return int.from_bytes(sha256(repr(key).encode()).digest())


def noticed_tiles(view: GameView, rack: tuple[Tile, ...], skill: Skill) -> tuple[Tile, ...]:
    """Returns the tiles of a rack that the viewer notices; of equal tiles perhaps only some."""
    copies = [rack[:place].count(t) for place, t in enumerate(rack)]
    return tuple(t for t, copy in zip(rack, copies, strict=True) if is_noticed(view, (t, copy), skill.rack))
