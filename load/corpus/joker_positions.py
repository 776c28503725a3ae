"""Positions in which the jokers of the table cannot be moved freely: random small ones, and ones of games."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from engine.melding.analysis import Situation
from engine.melding.melds import Meld, MeldKind, ProposedMeld, must_declare, read_meld
from engine.melding.presets import PRESETS
from engine.melding.retrieval import limits_retrieval
from engine.melding.ruleset import JokersDeclaration, Ruleset
from engine.tiles import COLORS, JOKER, MAX_VALUE, Tile, in_order, tile, value_of
from load.corpus.positions import read

RESTRICTED: Final = {preset.name: ruleset for preset, ruleset in PRESETS.items() if limits_retrieval(ruleset)}
"""The presets that restrict moving jokers."""

ON_TABLE: Final = 12
"""The most tiles on the table."""

ON_RACK: Final = 6
"""The most tiles on the rack."""


def joker_positions(ruleset: Ruleset, seed: int, number: int) -> Iterator[Situation]:
    """Yields positions of a player who has melded, with jokers on the table."""
    rng = random.Random(seed)
    found = 0
    while found < number:
        situation = _Maker(rng, ruleset).situation()
        if any(meld.joker_faces for meld in situation.table):
            yield situation
            found += 1


def positions_of_games(ruleset: Ruleset, number: int) -> list[Situation]:
    """Yields positions of games by the default rules, with jokers on the table, under other rules.

    It skips tables with melds that the other rules do not allow.
    """
    recorded = [one.situation for one in read() if one.game_jokers == ruleset.jokers(2)]
    found = [
        replace(situation, ruleset=ruleset)
        for situation in recorded
        if situation.has_melded
        and any(meld.joker_faces for meld in situation.table)
        and all(_read(ProposedMeld(meld.tiles, meld.kind), ruleset) for meld in situation.table)
    ]
    return random.Random(0).sample(found, min(number, len(found)))


def _read(proposed: ProposedMeld, ruleset: Ruleset) -> Meld | None:
    """Returns a meld even if required declarations are missing; None if it is no meld."""
    meld = read_meld(proposed, replace(ruleset, jokers_declaration=JokersDeclaration.POSITIONAL))
    return meld if isinstance(meld, Meld) else None


class _Maker:
    """Makes a position of a few adjacent values."""

    def __init__(self, rng: random.Random, ruleset: Ruleset) -> None:
        self.rng = rng
        self.ruleset = ruleset
        span = rng.choice((3, 4, 5, 6, 8, MAX_VALUE))
        first = rng.randint(1, MAX_VALUE + 1 - span)
        self.values = range(first, first + span)
        self.deck = Counter(ruleset.tiles(2))
        self.room = rng.choice((7, 8, 9, 10, 11, ON_TABLE, ON_TABLE))

    def situation(self) -> Situation:
        """Returns the position; it may have no joker on the table."""
        jokers = self.rng.choice(((1,), (1, 1), (2,), (2,)))
        table = [meld for count in (*jokers, 0, 0, 0, 0) if (meld := self._meld(count))]
        self.rng.shuffle(table)
        return Situation(tuple(table), self._rack(table), has_melded=True, ruleset=self.ruleset)

    def _meld(self, jokers: int) -> Meld | None:
        """Returns a meld with a number of jokers and removes its tiles, if there is room for it."""
        faces, kind = self._faces()
        wild = set(self.rng.sample(faces, min(jokers, len(faces) - 1)))
        tiles = tuple(JOKER if face in wild else face for face in faces)
        if kind is MeldKind.GROUP:
            tiles = tuple(sorted(tiles, key=lambda t: (t == JOKER, t)))
        if len(tiles) > self.room or not Counter(tiles) <= self.deck:
            return None
        meld = _read(ProposedMeld(tiles, kind, self._declared(sorted(wild))), self.ruleset)
        if meld:
            self.room -= len(tiles)
            self.deck -= Counter(tiles)
        return meld

    def _faces(self) -> tuple[Sequence[Tile], MeldKind]:
        colors, value = COLORS[: self.ruleset.geometry_colors], self.rng.choice(self.values)
        if self.rng.random() < 0.6:
            return [tile(color, value) for color in self.rng.sample(colors, self.rng.randint(3, 4))], MeldKind.GROUP
        length, color = self.rng.choice((3, 3, 3, 4, 4, 5, 6)), self.rng.choice(colors)
        first = min(value, MAX_VALUE + 1 - length)
        return [tile(color, first + step) for step in range(length)], MeldKind.RUN

    def _declared(self, wild: Sequence[Tile]) -> tuple[Tile, ...]:
        """Returns the faces of some jokers, or nothing; faces more often if the rules require them."""
        is_said = self.rng.random() < (0.7 if must_declare(len(wild), self.ruleset) else 0.2)
        return tuple(wild) if is_said else ()

    def _rack(self, table: Sequence[Meld]) -> tuple[Tile, ...]:
        """Returns some of the tiles that jokers of the table stand for, and others, mostly of the same values."""
        size = self.rng.choice((3, 4, 5, ON_RACK, ON_RACK, ON_RACK))
        roles = sorted({face for meld in table for faces in meld.joker_faces for face in faces if self.deck[face]})
        chosen = [face for face in roles if self.rng.random() < 0.5][:size]
        rest = self.deck - Counter(chosen)
        near = [t for t in rest.elements() if self.rng.random() < 0.2 or t == JOKER or value_of(t) in self.values]
        return in_order((*chosen, *self.rng.sample(near, min(len(near), size - len(chosen)))))
