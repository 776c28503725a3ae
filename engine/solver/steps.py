"""A turn as steps that a person can follow at the table: what to cut, take, put and lay, one after the other.

Only the tables before and after a turn matter to the rules, and tiles have no identity (docs/rules.md, Retrieval). So
there are many ways from one table to the other; this is a short one. In the midst of it melds may be unfinished.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeAlias

from engine.melds import Meld, MeldKind, ProposedMeld, as_proposed
from engine.notation import Naming, format_meld, format_tile, format_tiles
from engine.ruleset import SABRA, Ruleset
from engine.table import identity
from engine.tiles import JOKER, Tile


@dataclass(frozen=True, slots=True)
class OfTable:
    """A meld that lay on the table when the turn began, whatever becomes of it: its place there, from 1."""

    place: int


@dataclass(frozen=True, slots=True)
class Made:
    """A meld that the turn makes anew: the place, from 1, that it has on the table after the turn, and how it lies."""

    place: int
    becomes: ProposedMeld


Label: TypeAlias = OfTable | Made
"""What a meld is called from its first step to its last."""


@dataclass(frozen=True, slots=True)
class FromRack:
    """A tile comes from the rack."""


@dataclass(frozen=True, slots=True)
class FromMeld:
    """Tiles come from a meld, and how it lies without them: with no tiles if none are left."""

    meld: Label
    left: ProposedMeld


@dataclass(frozen=True, slots=True)
class Part:
    """What a part of a meld that was cut belongs to, and how it lies."""

    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Pull:
    """Tiles are pulled from the River to the rack; the first of them, the key, is played."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """A meld of the table is cut in two parts or more, a run from left to right; one of them goes on as what it was."""

    meld: OfTable
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Substitute:
    """A tile is put in the place of a joker that stood for it; the joker is free, and lies in a later step."""

    meld: Label
    tile: Tile
    source: FromRack | FromMeld
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Arrange:
    """The tiles of a meld are laid in another way, or its jokers declared to be something else."""

    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Take:
    """Tiles are taken from a meld and put to another one, or are the first of a new one."""

    source: FromMeld
    tiles: tuple[Tile, ...]
    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Join:
    """A meld, or all that is left of it, is put to another one."""

    source: Label
    tiles: tuple[Tile, ...]
    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Place:
    """Tiles of the rack are laid as a new meld, or are the first of one."""

    tiles: tuple[Tile, ...]
    meld: Made
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Extend:
    """Tiles of the rack are put to a meld."""

    tiles: tuple[Tile, ...]
    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class LayJokers:
    """Jokers that were set free are put to a meld."""

    jokers: int
    meld: Label
    laid: ProposedMeld


Step: TypeAlias = Pull | Split | Substitute | Arrange | Take | Join | Place | Extend | LayJokers
"""One thing to do. `laid` is how the meld lies then: with its kind and what is declared once it is finished, else its
tiles alone, with gaps where others are to come or with tiles that are still to go."""


def explain(
    before: tuple[Meld, ...],
    after: tuple[Meld, ...],
    ruleset: Ruleset = SABRA,
    pulled: tuple[Tile, ...] = (),
    untouched: tuple[int, ...] = (),
) -> tuple[Step, ...]:
    """The steps from one table to another; what comes to the table comes from the rack.

    Melds that both tables have are not touched. Of the others each goes on as the meld that it has most in common
    with, and of a face that moves in several ways the copies go where the fewest steps are needed, as far as a search
    without backtracking sees. The same tables get the same steps.

    Args:
        before: The table when the turn began.
        after: The table as the turn leaves it.
        ruleset: The rules, which say what must be declared of jokers.
        pulled: The tiles pulled from the River, oldest first (turn_draw TWO_RIVER).
        untouched: The places (from 0) of the melds that stay (Turn.untouched): of like ones it may be any.

    Raises:
        ValueError: A tile of the table before is not on the table after.
    """
    turn = _told(before, after, ruleset, untouched)
    steps: list[Step] = [Pull(pulled)] if pulled else []
    bench = _at_first(turn)
    for phase in _PHASES:
        for deed in tuple(phase(turn, bench)):
            is_seen = _is_seen(turn, bench, deed)
            bench, step = _done(turn, bench, deed)
            steps += [step] * is_seen
    return tuple(steps)


def describe(step: Step, naming: Naming = Naming.TILES) -> str:
    """A step as one line of plain English. Raises NotationError where there is no such card."""
    match step:
        case Pull(tiles):
            return f"Pull {format_tiles(tiles, naming)} from the River; {format_tile(tiles[0], naming)} is to be played"
        case Split(meld, parts):
            return f"Cut {_name(meld, naming)}: {' and '.join(format_meld(part.laid, naming) for part in parts)}"
        case Substitute(meld, tile, source, laid):
            where = f"the joker's place in {_put(meld, laid, naming)}; the joker is free"
            return f"Put {format_tile(tile, naming)} {_origin(source, naming)} in {where}"
        case Arrange(meld, laid):
            return f"Lay {_name(meld, naming)} in another way: {format_meld(laid, naming)}"
        case Take(source, tiles, meld, laid):
            return f"Take {format_tiles(tiles, naming)} {_origin(source, naming)} to {_put(meld, laid, naming)}"
        case Join(source, tiles, meld, laid):
            return f"Join {_name(source, naming)}, [{format_tiles(tiles, naming)}], to {_put(meld, laid, naming)}"
        case Place(tiles, meld, laid):
            return f"Lay {format_tiles(tiles, naming)} from the rack for {_put(meld, laid, naming)}"
        case Extend(tiles, meld, laid):
            return f"Put {format_tiles(tiles, naming)} from the rack to {_put(meld, laid, naming)}"
        case LayJokers(jokers, meld, laid):
            return f"Put {_free_jokers(jokers)} to {_put(meld, laid, naming)}"


def _name(label: Label, naming: Naming) -> str:
    if isinstance(label, OfTable):
        return f"meld {label.place}"
    return f"the new meld {format_meld(label.becomes, naming)}"


def _put(label: Label, laid: ProposedMeld, naming: Naming) -> str:
    """A meld's name and how it lies then; of a new one that is finished both are the same."""
    if isinstance(label, Made) and label.becomes == laid:
        return _name(label, naming)
    return f"{_name(label, naming)}: {format_meld(laid, naming)}"


def _origin(source: FromRack | FromMeld, naming: Naming) -> str:
    if isinstance(source, FromRack):
        return "from the rack"
    left = format_meld(source.left, naming) if source.left.tiles else "nothing"
    return f"from {_name(source.meld, naming)}, which leaves {left},"


def _free_jokers(number: int) -> str:
    return "the free joker" if number == 1 else f"the {number} free jokers"


# Which tile goes where.

_RACK: Final = -1
"""Where a tile of the rack comes from; melds are named by their places from 0."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a tile lies: meld, place in it, and the faces that it stands for there."""

    meld: int
    place: int
    tile: Tile
    faces: frozenset[Tile]


@dataclass(frozen=True, slots=True)
class _Way:
    """The way of one tile through the turn.

    Attributes:
        source: Where it lay, or the rack.
        target: Where it will lie.
        is_home: Whether it still lies in the meld of its source, beside the same tiles.
    """

    source: _Spot
    target: _Spot
    is_home: bool

    @property
    def keeps_its_role(self) -> bool:
        """Whether it will stand for nothing new."""
        return self.target.faces <= self.source.faces


@dataclass(frozen=True, slots=True)
class _Told:
    """A turn of which it is said where each tile goes.

    Attributes:
        before: The table when the turn began.
        after: The table after it.
        ways: The ways of all tiles of the melds that are changed or new.
        labels: What the changed and new melds of the table after are called.
        ruleset: The rules.
    """

    before: tuple[Meld, ...]
    after: tuple[Meld, ...]
    ways: tuple[_Way, ...]
    labels: Mapping[int, Label]
    ruleset: Ruleset

    def target(self, label: Label) -> int | None:
        """Which meld of the table after a meld becomes; none if it is dissolved."""
        return next((target for target, other in self.labels.items() if other == label), None)

    def fits(self, way: _Way, target: int | None) -> bool:
        """Whether a tile that lies in a meld is to lie there; a joker of a run may have to lie elsewhere in it."""
        return way.target.meld == target and (not way.is_home or way.keeps_its_role)

    def finished(self, target: int) -> ProposedMeld:
        """A meld of the table after."""
        return as_proposed(self.after[target], self.ruleset)

    def begins_with(self, target: int) -> int:
        """The meld of the table that gives most tiles to a new one."""
        home = (way for way in self.ways if way.target.meld == target and way.is_home and way.keeps_its_role)
        given = Counter(way.source.meld for way in home)
        return min(given, key=lambda source: (-given[source], source))

    def lying(self, bench: "_Bench") -> Iterator[tuple[Label, int]]:
        """The melds that lie there already and will lie on the table after."""
        return ((label, target) for target, label in self.labels.items() if label in bench)


_Pairs: TypeAlias = Counter[tuple[int, int]]
"""How many tiles go from a meld of the table before, or the rack, to a meld of the table after."""


def _told(before: tuple[Meld, ...], after: tuple[Meld, ...], ruleset: Ruleset, untouched: tuple[int, ...]) -> _Told:
    """The ways of the tiles, and which meld goes on as which."""
    sources = tuple(_spots(before, _changed(before, after, untouched)))
    targets = tuple(_spots(after, _changed(after, before)))
    ways = _ways(sources, targets, _heirs(before, after, _could_go(sources, targets)))
    stay = Counter((way.source.meld, way.target.meld) for way in ways if way.is_home and way.keeps_its_role)
    goes_on = {target: source for source, target in _heirs(before, after, stay).items()}
    labels = {
        target: OfTable(goes_on[target] + 1)
        if target in goes_on
        else Made(target + 1, as_proposed(after[target], ruleset))
        for target in dict.fromkeys(spot.meld for spot in targets)
    }
    return _Told(before, after, ways, labels, ruleset)


def _changed(table: tuple[Meld, ...], other: tuple[Meld, ...], untouched: tuple[int, ...] = ()) -> Iterator[int]:
    """The places of the melds of a table that another table does not have; of groups, laid alike is kept first.

    Of like melds those are kept that are untouched, then those that come first.
    """
    same, alike = Counter(other), Counter(map(identity, (Counter(other) - Counter(table)).elements()))
    for place in dict.fromkeys((*untouched, *range(len(table)))):
        meld = table[place]
        if same[meld]:
            same[meld] -= 1
        elif alike[identity(meld)]:
            alike[identity(meld)] -= 1
        else:
            yield place


def _spots(table: tuple[Meld, ...], places: Iterator[int]) -> Iterator[_Spot]:
    """The tiles of some melds of a table."""
    for meld in places:
        jokers = iter(table[meld].joker_faces)
        for place, tile in enumerate(table[meld].tiles):
            yield _Spot(meld, place, tile, frozenset(next(jokers) if tile == JOKER else (tile,)))


def _could_go(sources: tuple[_Spot, ...], targets: tuple[_Spot, ...]) -> _Pairs:
    """How many tiles at most melds have in common."""
    return Counter(
        (source.meld, target.meld)
        for source in sources
        for target in targets
        if source.tile == target.tile and target.faces <= source.faces
    )


def _heirs(before: tuple[Meld, ...], after: tuple[Meld, ...], pairs: _Pairs) -> dict[int, int]:
    """Which meld goes on as which, so that most tiles stay where they are; of like ones of the same kind."""
    old, new = (sorted({pair[side] for pair in pairs}) for side in (0, 1))
    weights = [[_weight(before[one], after[other], pairs[one, other]) for other in new] for one in old]
    return {old[row]: new[column] for row, column in _best_pairs(weights).items()}


def _weight(old: Meld, new: Meld, common: int) -> int:
    return 2 * common + (old.kind is new.kind) if common else 0


def _ways(sources: tuple[_Spot, ...], targets: tuple[_Spot, ...], heirs: Mapping[int, int]) -> tuple[_Way, ...]:
    """The way of each tile, face by face: those first that go one way only, then the others along with them."""
    came, went = defaultdict(list), defaultdict(list)
    for spot in sources:
        came[spot.tile].append(spot)
    for spot in targets:
        went[spot.tile].append(spot)
    for tile in came.keys() | went.keys():
        from_rack = len(went[tile]) - len(came[tile])
        if from_rack < 0:
            raise ValueError(f"{format_tile(tile)} has left the table")
        came[tile] += [_Spot(_RACK, place, tile, frozenset((tile,))) for place in range(from_rack)]
    told: dict[Tile, tuple[_Way, ...]] = {}
    for _ in range(2):  # the first time the first ones do not know yet where the others go
        for tile in sorted(went, key=lambda tile: (_choices(came[tile]) * _choices(went[tile]), tile)):
            others = {_ends(way) for other, ways in told.items() if other != tile for way in ways}
            told[tile] = _paired(came[tile], went[tile], heirs, others)
    return tuple(way for ways in told.values() for way in ways)


def _choices(spots: list[_Spot]) -> int:
    return len({spot.meld for spot in spots})


def _ends(way: _Way) -> tuple[int, int]:
    return way.source.meld, way.target.meld


def _paired(
    came: list[_Spot], went: list[_Spot], heirs: Mapping[int, int], others: set[tuple[int, int]]
) -> tuple[_Way, ...]:
    """The ways of the copies of one face: to stay where they are, else along with other tiles."""

    def ease(source: _Spot, target: _Spot) -> int:
        if heirs.get(source.meld) == target.meld:
            return 5 if target.faces <= source.faces else 3
        return 2 if (source.meld, target.meld) in others else 1

    pairs = _best_pairs([[ease(source, target) for target in went] for source in came])
    return tuple(_Way(came[one], went[other], came[one].meld != _RACK) for one, other in sorted(pairs.items()))


def _best_pairs(weights: Sequence[Sequence[int]]) -> dict[int, int]:
    """Rows with a column of their own so that the sum of the weights is greatest; a weight of 0 is no pair."""
    holders: dict[int, int] = {}
    while chain := _best_chain(weights, holders):
        holders |= {column: row for row, column in chain}
    return {row: column for column, row in sorted(holders.items())}


_Chain: TypeAlias = tuple[tuple[int, int], ...]


def _best_chain(weights: Sequence[Sequence[int]], holders: Mapping[int, int]) -> _Chain:
    """The exchanges by which one row more has a column and the sum grows most; none if it cannot grow."""
    free = [row for row in range(len(weights)) if row not in holders.values()]
    chains: dict[int, tuple[int, _Chain]] = dict.fromkeys(free, (0, ()))
    best: tuple[int, _Chain] = (0, ())
    for row in free:  # grows as rows are found that could give their column away
        for column in (column for column, weight in enumerate(weights[row]) if weight):
            sum_, chain = chains[row][0] + weights[row][column], (*chains[row][1], (row, column))
            holder = holders.get(column)
            if holder is None:
                best = max(best, (sum_, chain), key=itemgetter(0))
            elif holder not in chains or sum_ - weights[holder][column] > chains[holder][0]:
                chains[holder] = sum_ - weights[holder][column], chain
                free.append(holder)
    return best[1]


# From the ways to the steps.


class _Pile(Enum):
    """Where tiles lie that are in no meld."""

    RACK = auto()
    FREE = auto()
    """Jokers whose place another tile has taken."""


_Where: TypeAlias = Label | _Pile

_Bench: TypeAlias = Mapping[_Where, tuple[_Way, ...]]
"""What lies where in the midst of the turn: tiles by their ways."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A meld falls into parts."""

    meld: OfTable
    parts: tuple[tuple[Label, tuple[_Way, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Swap:
    """A tile takes the place of a joker."""

    meld: Label
    joker: _Way
    way: _Way
    origin: _Where


@dataclass(frozen=True, slots=True)
class _Carry:
    """Tiles get to their meld; those that are there already, to their places in it."""

    meld: Label
    ways: tuple[_Way, ...]
    origin: _Where


_Deed: TypeAlias = _Cut | _Swap | _Carry


def _at_first(turn: _Told) -> _Bench:
    """What lies where when the turn begins."""
    bench: dict[_Where, tuple[_Way, ...]] = {}
    for way in sorted(turn.ways, key=lambda way: (way.source.meld, way.source.place)):
        where = OfTable(way.source.meld + 1) if way.is_home else _Pile.RACK
        bench[where] = (*bench.get(where, ()), way)
    return bench


def _done(turn: _Told, bench: _Bench, deed: _Deed) -> tuple[_Bench, Step]:
    """What lies where after a deed, and the step that it is."""
    match deed:
        case _Cut(meld, parts):
            bench = {**bench, **dict(parts)}
            return bench, Split(meld, tuple(Part(label, _laid(turn, bench, label)) for label, _ in parts))
        case _Swap(meld, joker, way, origin):
            place = replace(way, source=replace(joker.source, tile=way.source.tile), is_home=joker.is_home)
            bench = _moved(_without(bench, origin, (way,)), meld, (joker,), _Pile.FREE)
            bench = _with(bench, meld, (place,))
            source = FromRack() if isinstance(origin, _Pile) else FromMeld(origin, _laid(turn, bench, origin))
            return bench, Substitute(meld, way.source.tile, source, _laid(turn, bench, meld))
        case _Carry(meld, ways, origin):
            return _moved(bench, origin, ways, meld), _carried(turn, bench, deed)


def _without(bench: _Bench, origin: _Where, ways: tuple[_Way, ...]) -> _Bench:
    """The bench when some tiles have been taken from where they lay."""
    left = {**bench, origin: tuple(way for way in bench[origin] if way not in ways)}
    return {where: lying for where, lying in left.items() if lying}


def _with(bench: _Bench, where: _Where, ways: tuple[_Way, ...]) -> _Bench:
    """The bench when some tiles have been put somewhere."""
    return {**bench, where: (*bench.get(where, ()), *ways)}


def _moved(bench: _Bench, origin: _Where, ways: tuple[_Way, ...], where: _Where) -> _Bench:
    """The bench when some tiles have got from one place to another, where they have no home."""
    return _with(_without(bench, origin, ways), where, tuple(replace(way, is_home=False) for way in ways))


def _carried(turn: _Told, bench: _Bench, carry: _Carry) -> Step:
    """The step by which tiles come to a meld."""
    meld, origin = carry.meld, carry.origin
    moved = _moved(bench, origin, carry.ways, meld)
    tiles = tuple(way.source.tile for way in carry.ways)
    laid = _laid(turn, moved, meld)
    if origin == meld:
        return Arrange(meld, laid)
    if origin is _Pile.FREE:
        return LayJokers(len(tiles), meld, laid)
    if isinstance(origin, _Pile):
        return Place(tiles, meld, laid) if isinstance(meld, Made) and meld not in bench else Extend(tiles, meld, laid)
    left = _laid(turn, moved, origin)
    return Take(FromMeld(origin, left), tiles, meld, laid) if left.tiles else Join(origin, tiles, meld, laid)


def _is_seen(turn: _Told, bench: _Bench, deed: _Deed) -> bool:
    """Whether a deed is a step: not if a tile lies already where it is to stand for something else.

    Then the other steps of its meld tell that it does, if there are any.
    """
    if not isinstance(deed, _Carry) or deed.origin != deed.meld:
        return True
    moved = _moved(bench, deed.meld, deed.ways, deed.meld)
    return _is_untouched(turn, bench, deed.meld) or _laid(turn, moved, deed.meld) != _laid(turn, bench, deed.meld)


def _is_untouched(turn: _Told, bench: _Bench, label: Label) -> bool:
    """Whether nothing has gone from a meld of the table, and nothing comes to it."""
    target = turn.target(label)
    is_full = target is not None and len(turn.after[target].tiles) == len(bench[label])
    return is_full and bench[label] == _at_first(turn).get(label)


def _laid(turn: _Told, bench: _Bench, label: Label) -> ProposedMeld:
    """How a meld lies: as it shall if all that belongs to it has come, else the tiles that are there."""
    ways, target = bench.get(label, ()), turn.target(label)
    tiles = tuple(way.source.tile for way in _in_line(turn, ways, target))
    if target is None or any(way.target.meld != target for way in ways):
        return ProposedMeld(tiles)
    after = turn.after[target]
    is_there = len(tiles) == len(after.tiles) and (after.kind is MeldKind.GROUP or tiles == after.tiles)
    return turn.finished(target) if is_there else ProposedMeld(tiles)


def _slot(way: _Way) -> int:
    return way.target.place


def _in_line(turn: _Told, ways: tuple[_Way, ...], target: int | None) -> list[_Way]:
    """The tiles of a meld from left to right: what lay there as it did, what has come where it shall lie."""
    if target is not None and turn.after[target].kind is MeldKind.GROUP:
        return sorted(ways, key=lambda way: (0, way.source.place) if way.is_home else (1, way.target.place))
    line = sorted((way for way in ways if way.is_home), key=lambda way: way.source.place)
    for way in sorted((way for way in ways if not way.is_home), key=_slot):
        line.insert(
            _place_of(way, {_slot(other): at for at, other in enumerate(line) if turn.fits(other, target)}), way
        )
    return line


def _place_of(way: _Way, places: Mapping[int, int]) -> int:
    """Where a tile comes to lie in a line: behind its neighbor to the left, else before the other, else first.

    Known are the places in the line of the tiles that lie right, by the place in the meld.
    """
    left = [slot for slot in places if slot < _slot(way)]
    right = [slot for slot in places if slot > _slot(way)]
    if left:
        return places[max(left)] + 1
    return places[min(right)] if right else 0


# What is done, in this order: first all that makes room.


def _cuts(turn: _Told, bench: _Bench) -> Iterator[_Deed]:
    """The melds that fall into parts from which new melds are made."""
    for label, ways in bench.items():
        target = turn.target(label) if isinstance(label, OfTable) else None
        if isinstance(label, OfTable) and target is not None:
            owners = _owners(turn, ways, target)
            if len(owners) > 1:
                yield _Cut(label, _parts(turn, ways, owners))


def _owners(turn: _Told, ways: tuple[_Way, ...], target: int) -> tuple[int, ...]:
    """The melds that get a part of a meld: the one that it goes on as, and the new ones that begin with one.

    A new one begins with its greatest part from the table, if that has two tiles at least, and if a run can be cut so.
    """
    sizes = Counter(way.target.meld for way in ways if way.keeps_its_role)
    owners: tuple[int, ...] = (target,)
    for new in sorted(sizes, key=lambda new: (-sizes[new], new)):
        begins = isinstance(turn.labels[new], Made) and sizes[new] > 1 and turn.begins_with(new) == ways[0].source.meld
        if begins and _can_be_cut(turn, ways, (*owners, new)):
            owners = (*owners, new)
    return owners


def _can_be_cut(turn: _Told, ways: tuple[_Way, ...], owners: tuple[int, ...]) -> bool:
    """Whether all parts are of the meld's kind, and in a run the tiles of each part lie together."""
    kind = turn.before[ways[0].source.meld].kind
    parts = [owner for owner, _ in groupby(way.target.meld for way in ways if way.target.meld in owners)]
    lie_together = kind is MeldKind.GROUP or len(parts) == len(owners)
    return lie_together and all(turn.after[owner].kind is kind for owner in owners)


def _parts(turn: _Told, ways: tuple[_Way, ...], owners: tuple[int, ...]) -> tuple[tuple[Label, tuple[_Way, ...]], ...]:
    """The parts from left to right. A tile that goes elsewhere stays for now with a neighbor, at best the old meld."""
    kept = [place for place, way in enumerate(ways) if way.target.meld in owners]
    parts: dict[Label, tuple[_Way, ...]] = {}
    for place, way in enumerate(ways):
        left = [ways[other].target.meld for other in kept if other <= place][-1:]
        right = [ways[other].target.meld for other in kept if other >= place][:1]
        owner = min(left + right, key=owners.index) if place not in kept else way.target.meld
        parts[turn.labels[owner]] = (*parts.get(turn.labels[owner], ()), way)
    return tuple(parts.items())


def _swaps(turn: _Told, bench: _Bench) -> Iterator[_Deed]:
    """The jokers that leave their places, of which a tile that comes to the meld is to lie there."""
    for label, target in turn.lying(bench):
        coming = [
            (origin, way)
            for origin, ways in bench.items()
            for way in ways
            if way.target.meld == target and origin != label and way.source.tile != JOKER
        ]
        for joker in bench[label]:
            leaves = joker.source.tile == JOKER and not (joker.target.meld == target and joker.keeps_its_role)
            found = next((one for one in coming if leaves and one[1].source.tile in joker.source.faces), None)
            if found:
                coming.remove(found)
                yield _Swap(label, joker, found[1], found[0])


def _shifts(turn: _Told, bench: _Bench) -> Iterator[_Deed]:
    """The tiles that stay in their meld and have to lie elsewhere in it.

    They are jokers that are to stand for something else; or all of a run that begins elsewhere (run_wrap CYCLIC).
    """
    for label, target in turn.lying(bench):
        staying = [way for way in bench[label] if way.target.meld == target and way.is_home]
        lying = sorted((way for way in staying if way.keeps_its_role), key=lambda way: way.source.place)
        is_turned = turn.after[target].kind is MeldKind.RUN and lying != sorted(lying, key=_slot)
        shifted = tuple(way for way in staying if is_turned or not way.keeps_its_role)
        if shifted:
            yield _Carry(label, shifted, label)


def _takes(turn: _Told, bench: _Bench) -> Iterator[_Deed]:
    """The tiles that come from other melds."""
    return (carry for carry in _carries(turn, bench) if not isinstance(carry.origin, _Pile))


def _carries(turn: _Told, bench: _Bench) -> Iterator[_Carry]:
    """The tiles that come to a meld, meld by meld: of the table, then of the rack, then the jokers set free."""
    for target, label in turn.labels.items():
        loads = {
            origin: tuple(sorted((way for way in ways if way.target.meld == target), key=_slot))
            for origin, ways in bench.items()
            if origin != label
        }
        order = sorted((origin for origin in loads if loads[origin]), key=_order)
        yield from (_Carry(label, loads[origin], origin) for origin in order)


def _order(origin: _Where) -> tuple[int, int]:
    if isinstance(origin, OfTable):
        return 0, origin.place
    if isinstance(origin, Made):
        return 1, origin.place
    return (2, 0) if origin is _Pile.RACK else (3, 0)


def _declarations(turn: _Told, bench: _Bench) -> Iterator[_Deed]:
    """The melds to which nothing has come and from which nothing has gone."""
    return (_Carry(label, (), label) for label, _ in turn.lying(bench) if _is_untouched(turn, bench, label))


_PHASES: Final = (_cuts, _swaps, _takes, _shifts, _carries, _declarations)
