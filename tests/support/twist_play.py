"""Random melds, turns and plays with the jokers of Twist, whose melds the oracle reads."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, permutations

from engine.melding.analysis import Situation
from engine.melding.melds import Meld, ProposedMeld
from engine.melding.ruleset import Ruleset, TwistColorChangeAtEnd
from engine.tiles import COLOR_CHANGE, DOUBLE_JOKER, JOKER, JOKERS, MIRROR, SPECIAL_JOKERS, Tile, in_order, without
from oracles.brute_force import as_sent
from oracles.plain_search import Found, search_by_chance
from oracles.twist_melds import Options, Shape, Turn, face_of, groups, readings, runs

Tiles = tuple[Tile, ...]
TRIES = 60
"""How many sequences of tiles a player tries."""


# Melds and turns


def random_meld(rng: random.Random, options: Options) -> Tiles:
    """Returns tiles that are a meld, mostly, as far as the number of its tiles and jokers goes."""
    is_mirror = rng.random() < 0.4
    least = options.half_min if is_mirror else 3
    if rng.random() < 0.3:
        shape = rng.choice(groups(rng.randint(least, 4), rng.randint(1, 13), options.colors))
    else:
        size = rng.randint(least, 6)
        inner = range(size) if options.change_at_end else range(1, size - 1)
        places = sorted(rng.sample(inner, min(len(inner), rng.choice((0, 0, 1, 2)))))
        is_apart = options.change_at_end or all(b - a > 1 for a, b in pairwise(places))
        shape = rng.choice(runs(size, tuple(places if is_apart else places[:1]), options))
    if is_mirror:
        return (*_covering(shape, rng), MIRROR, *_covering(shape, rng)[::-1])
    return _covering(shape, rng)


def _covering(shape: Shape, rng: random.Random) -> Tiles:
    tiles: list[Tile] = []
    slots = list(shape)
    while slots:
        (color, value), *slots = slots
        if color is None:
            tiles.append(COLOR_CHANGE)
        elif slots and slots[0][0] is not None and rng.random() < 0.15:
            tiles.append(DOUBLE_JOKER)
            del slots[0]
        else:
            tiles.append(JOKER if rng.random() < 0.15 else face_of(color, value))
    return tuple(tiles)


def random_turn(rng: random.Random, options: Options) -> Turn:
    """Returns a turn: melds are laid, and sometimes others are made of those of the table, or something is wrong."""
    melds = [tiles for tiles in (random_meld(rng, options) for _ in range(8)) if readings(tiles, options)]
    before, new = melds[:2], melds[2 : 2 + rng.randint(0, 2)]
    after = [*before, *new]
    rack = [t for tiles in new for t in tiles]
    if rng.random() < 0.4 and before:
        after[0], rack = _changed(before[0], rack, rng)
    if rng.random() < 0.15 and after:
        place = rng.randrange(len(after))
        after[place] = tuple(rng.sample(after[place], len(after[place])))
    if rng.random() < 0.1 and after:
        del after[rng.randrange(len(after))]
    extra = rng.sample([t for tiles in melds for t in tiles], 2)
    return Turn(tuple(before), tuple(after), (*rack[rng.random() < 0.05 :], *extra), rng.random() < 0.6)


def _changed(tiles: Tiles, rack: list[Tile], rng: random.Random) -> tuple[Tiles, list[Tile]]:
    """Returns a meld with another tile, or with one more at an end, and a rack with that tile."""
    t = Tile(rng.choice([*range(1, 53), *JOKERS]))
    numbered = [t for t in tiles if t not in JOKERS]
    near = [Tile(face) for one in numbered for face in (one - 1, one + 1, one + 13) if 0 < face < JOKER]
    t = rng.choice([t, *near])
    place = rng.choice((0, len(tiles), rng.randrange(len(tiles))))
    return (*tiles[:place], t, *tiles[place + (rng.random() < 0.2) :]), [*rack, t]


# Plays


def options_of(ruleset: Ruleset) -> Options:
    """Returns the oracle's options of a ruleset."""
    at_end = ruleset.twist_color_change_at_end is TwistColorChangeAtEnd.ALLOWED
    return Options(at_end, ruleset.twist_mirror_half_min, ruleset.geometry_colors)


def twist_by_chance(situation: Situation, rng: random.Random, drawn: Tile | None = None) -> Found | None:
    """Returns a legal play, if one is found; never one of a tile just drawn that may not be played.

    It lays a meld with a special joker, or joins two melds by one; or special jokers stay where they are.
    """
    hand = situation.rack if drawn is None else without(situation.rack, (drawn,))
    if not SPECIAL_JOKERS.isdisjoint(hand) and rng.random() < 0.5:
        for proposed, played in _with_special_joker(situation, hand, rng):
            return Found(proposed, without(situation.rack, played))
    aside = [meld for meld in situation.table if not SPECIAL_JOKERS.isdisjoint(meld.tiles)]
    table = tuple(meld for meld in situation.table if meld not in aside)
    kept = tuple(t for t in situation.rack if t in SPECIAL_JOKERS)
    plain = replace(situation, table=table, rack=without(situation.rack, kept))
    found = search_by_chance(plain, rng, None if drawn in SPECIAL_JOKERS else drawn)
    return found and replace(found, table=(*found.table, *map(_as_sent, aside)), left=in_order((*found.left, *kept)))


def _with_special_joker(
    situation: Situation, hand: Tiles, rng: random.Random
) -> Iterator[tuple[tuple[ProposedMeld, ...], Tiles]]:
    """Yields tables with one more meld, or with two melds in one, and the tiles played."""
    options, table = options_of(situation.ruleset), situation.table
    least = 0 if situation.has_melded else situation.ruleset.initial_meld_threshold
    for tiles in _sequences(hand, rng):
        read = readings(tiles, options)
        if read and next(iter(read.values())).points >= least:
            yield (*map(_as_sent, table), ProposedMeld(tiles)), tiles
    for tiles, joker, rest in _joined(table, hand) if situation.has_melded else ():
        if readings(tiles, options):
            yield (*map(_as_sent, rest), ProposedMeld(tiles)), (joker,)


def _as_sent(meld: Meld) -> ProposedMeld:
    """Returns a meld of the table as a player sends it: melds with special jokers have no declared faces."""
    return as_sent(meld) if SPECIAL_JOKERS.isdisjoint(meld.tiles) else ProposedMeld(meld.tiles, meld.kind)


def _sequences(hand: Tiles, rng: random.Random) -> Iterator[Tiles]:
    """Yields tiles of a hand in orders that may form a meld with a special joker."""
    special = [t for t in hand if t in SPECIAL_JOKERS]
    numbered = [t for t in hand if t not in JOKERS]
    pairs = [t for t, count in Counter(numbered).items() if count > 1]
    for _ in range(TRIES if len(numbered) > 1 else 0):
        joker, (low, high) = rng.choice(special), sorted(rng.sample(numbered, 2), key=lambda t: (t - (t > 53) - 1) % 13)
        if joker == MIRROR:
            yield from ((a, b, MIRROR, b, a) for a, b in permutations(pairs, 2))
        else:
            yield from ((low, joker, high), (low, high, joker), (joker, low, high))


def _joined(table: Sequence[Meld], hand: Tiles) -> Iterator[tuple[Tiles, Tile, list[Meld]]]:
    """Yields the tiles of two melds with a special joker between them, that joker, and the other melds."""
    for one, other in permutations(table, 2):
        rest = list(table)
        rest.remove(one)
        rest.remove(other)
        if MIRROR in hand and one.tiles == other.tiles:
            yield (*one.tiles, MIRROR, *other.tiles[::-1]), MIRROR, rest
        if COLOR_CHANGE in hand:
            yield (*one.tiles, COLOR_CHANGE, *other.tiles), COLOR_CHANGE, rest
