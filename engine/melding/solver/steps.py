"""Steps that a person can follow at the table: the types, and each step as a line of English.

explanation.py finds the steps of a turn.
"""

from dataclasses import dataclass
from typing import TypeAlias

from engine.melding.melds import ProposedMeld
from engine.melding.notation import format_meld
from engine.notation import Naming, format_tile, format_tiles
from engine.tiles import Tile


@dataclass(frozen=True, slots=True)
class TableMeld:
    """A meld that was on the table before the turn, by its place there (from 1)."""

    place: int


@dataclass(frozen=True, slots=True)
class NewMeld:
    """A meld that the turn creates: its place (from 1) on the table after the turn, and its final form."""

    place: int
    becomes: ProposedMeld


Label: TypeAlias = TableMeld | NewMeld
"""Identifies a meld from its first step to its last."""


@dataclass(frozen=True, slots=True)
class FromRack:
    """A tile comes from the rack."""


@dataclass(frozen=True, slots=True)
class FromMeld:
    """Tiles come from a meld; `left` is the rest of that meld, without tiles if none remain."""

    meld: Label
    left: ProposedMeld


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a meld that was cut: the meld it belongs to now, and its tiles."""

    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Pull:
    """Pulls tiles from the River to the rack; the first of them, the key, is played."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Cuts a meld of the table into two or more parts, a run from left to right; one part stays the old meld."""

    meld: TableMeld
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Substitute:
    """Replaces a joker with the tile that it stands for; a later step lays the free joker."""

    meld: Label
    tile: Tile
    source: FromRack | FromMeld
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Arrange:
    """Reorders the tiles of a meld, or declares its jokers anew."""

    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Take:
    """Takes tiles from one meld and adds them to another, or starts a new meld with them."""

    source: FromMeld
    tiles: tuple[Tile, ...]
    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Join:
    """Adds a meld, or all that is left of it, to another one."""

    source: Label
    tiles: tuple[Tile, ...]
    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Place:
    """Starts a new meld with tiles of the rack."""

    tiles: tuple[Tile, ...]
    meld: NewMeld
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class Extend:
    """Adds tiles of the rack to a meld."""

    tiles: tuple[Tile, ...]
    meld: Label
    laid: ProposedMeld


@dataclass(frozen=True, slots=True)
class LayJokers:
    """Adds free jokers to a meld."""

    jokers: int
    meld: Label
    laid: ProposedMeld


Step: TypeAlias = Pull | Split | Substitute | Arrange | Take | Join | Place | Extend | LayJokers
"""One step. `laid` is the meld after the step. A finished meld has its kind and declarations. An unfinished one is a
plain list of tiles: some may still be missing, others may still have to leave."""


def describe_step(step: Step, naming: Naming = Naming.TILES) -> str:
    """Returns a step as one line of English. Raises NotationError if a tile has no card name."""
    match step:
        case Pull(tiles):
            return f"Pull {format_tiles(tiles, naming)} from the River; {format_tile(tiles[0], naming)} is to be played"
        case Split(meld, parts):
            return f"Cut {_name(meld, naming)}: {' and '.join(format_meld(part.laid, naming) for part in parts)}"
        case Substitute(meld, tile, source, laid):
            where = f"the joker's place in {_target(meld, laid, naming)}; the joker is free"
            return f"Put {format_tile(tile, naming)} {_source(source, naming)} in {where}"
        case Arrange(meld, laid):
            return f"Lay {_name(meld, naming)} in another way: {format_meld(laid, naming)}"
        case Take(source, tiles, meld, laid):
            return f"Take {format_tiles(tiles, naming)} {_source(source, naming)} to {_target(meld, laid, naming)}"
        case Join(source, tiles, meld, laid):
            return f"Join {_name(source, naming)}, [{format_tiles(tiles, naming)}], to {_target(meld, laid, naming)}"
        case Place(tiles, meld, laid):
            return f"Lay {format_tiles(tiles, naming)} from the rack for {_target(meld, laid, naming)}"
        case Extend(tiles, meld, laid):
            return f"Put {format_tiles(tiles, naming)} from the rack to {_target(meld, laid, naming)}"
        case LayJokers(jokers, meld, laid):
            return f"Put {_free_jokers(jokers)} to {_target(meld, laid, naming)}"


def _name(label: Label, naming: Naming) -> str:
    if isinstance(label, TableMeld):
        return f"meld {label.place}"
    return f"the new meld {format_meld(label.becomes, naming)}"


def _target(label: Label, laid: ProposedMeld, naming: Naming) -> str:
    """Returns a meld's name and its tiles; the name of a finished new meld already shows its tiles."""
    if isinstance(label, NewMeld) and label.becomes == laid:
        return _name(label, naming)
    return f"{_name(label, naming)}: {format_meld(laid, naming)}"


def _source(source: FromRack | FromMeld, naming: Naming) -> str:
    if isinstance(source, FromRack):
        return "from the rack"
    left = format_meld(source.left, naming) if source.left.tiles else "nothing"
    return f"from {_name(source.meld, naming)}, which leaves {left},"


def _free_jokers(number: int) -> str:
    return "the free joker" if number == 1 else f"the {number} free jokers"
