"""A turn as steps that a person can follow at the table: what to cut, take, put and lay, one after the other.

Only the tables before and after a turn matter to the rules, and tiles have no identity (docs/rules.md, Retrieval). So
there are many ways from one table to the other; this is a short one. In the midst of it melds may be unfinished.
"""

from dataclasses import dataclass
from typing import TypeAlias

from engine.melds import ProposedMeld
from engine.notation import Naming, format_meld, format_tile, format_tiles
from engine.tiles import Tile


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
    """A meld of the table is cut in two parts or more, from left to right; one of them goes on as the meld it was."""

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
        case Join(source, _, meld, laid):
            return f"Join {_name(source, naming)} to {_put(meld, laid, naming)}"
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
