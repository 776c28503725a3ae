"""The text of the moves of a melding game, in the notation of melds and tables (notation.py)."""

import re
from dataclasses import replace
from typing import Final

from engine.melding.events import RoundStarted, StartDraw
from engine.melding.grid.cells import Grid
from engine.melding.melds import Meld, ProposedMeld, as_proposed, read_meld
from engine.melding.notation import format_meld, format_table, parse_table
from engine.melding.position import legal_table
from engine.melding.ruleset import Ruleset
from engine.melding.table import Table, as_proposed_table
from engine.moves import Move, MoveKind
from engine.notation import (
    EMPTY,
    Piece,
    format_rack,
    format_racks,
    format_tile,
    format_tiles,
    parse_pool,
    parse_racks,
    parse_seat,
    parse_tile,
    parse_tiles,
)

_DEAL_SEPARATORS: Final = 3
"""Between draws, order, racks and pool. A position has one more, before its table."""


class MoveText:
    """Formats and parses what follows the verbs of moves."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._ruleset = ruleset
        self._melds: dict[ProposedMeld, ProposedMeld] = {}
        """The melds of texts as a record has them: most are on the table after many moves."""

    def format(self, move: Move) -> str:
        """Returns what follows the verb of a move."""
        if isinstance(move.dealt, RoundStarted):
            return _format_deal(move.dealt, self._ruleset)
        if move.table is None:
            return format_tiles(move.tiles)
        if move.kind is MoveKind.SHOW and not isinstance(move.table, Grid):
            return " | ".join(map(_format_shown, move.table)) or EMPTY
        pull = "" if move.river_index is None else f"pull {move.river_index} "
        return f"{'play ' if move.kind is MoveKind.TIME_OUT else pull}{format_table(move.table)}"

    def parse(self, move: Move, rest: Piece, round_number: int) -> Move:
        """Returns a move with what follows its verb. Raises NotationError."""
        words = rest.words()
        match move.kind:
            case MoveKind.DEAL | MoveKind.REDEAL:
                return replace(move, dealt=self._deal(rest, round_number))
            case MoveKind.PLAY | MoveKind.KNOCK if words and words[0].text == "pull":
                if len(words) < 2 or not re.fullmatch("[0-9]{1,3}", words[1].text):
                    raise rest.error("pulls nothing: expected pull and a place on the River, from 0")
                return replace(self._with_table(move, rest.after(words[1])), river_index=int(words[1].text))
            case MoveKind.SHOW:
                return replace(move, table=rest.read(parse_table))
            case MoveKind.PLAY:
                return self._with_table(move, rest)
            case MoveKind.KNOCK if words:
                return self._with_table(move, rest)
            case MoveKind.TIME_OUT if words and words[0].text == "play":
                return self._with_table(move, rest.after(words[0]))
            case _:
                return replace(move, tiles=rest.read(parse_tiles))

    def _deal(self, rest: Piece, round_number: int) -> RoundStarted:
        """Returns a deal; a position has its table after the pool."""
        separators = rest.text.count("/")
        has_table = separators > _DEAL_SEPARATORS
        parts = rest.parts("/" * max(separators, _DEAL_SEPARATORS), "draws / order / racks / pool, with / table")
        draws = next(parts)
        drawn = () if draws.text == EMPTY else tuple(map(_draw, draws.words()))
        seats = tuple(map(parse_seat, next(parts).words()))
        racks, pool = parse_racks(next(parts)), parse_pool(next(parts))
        table = self._legal_table(next(parts)) if has_table else None
        return RoundStarted(round_number, drawn, seats, racks, pool, table)

    def _legal_table(self, text: Piece) -> Table:
        table = legal_table(text.read(parse_table), self._ruleset)
        if table is None:
            raise text.error("is no legal table")
        return table

    def _with_table(self, move: Move, text: Piece) -> Move:
        table = text.read(parse_table)
        return replace(move, table=table if isinstance(table, Grid) else tuple(map(self._recorded, table)))

    def _recorded(self, meld: ProposedMeld) -> ProposedMeld:
        """Returns a meld as `record_of` has it: with its kind, as the ruleset reads it."""
        if meld not in self._melds:
            read = read_meld(meld, self._ruleset)
            self._melds[meld] = as_proposed(read, self._ruleset) if isinstance(read, Meld) else meld
        return self._melds[meld]


def _format_shown(meld: ProposedMeld) -> str:
    """Returns a meld of an illegal play, with its kind wherever it was stated."""
    text = format_meld(meld)
    return f"{meld.kind.name.lower()}{text}" if meld.kind and text.startswith("[") else text


def _format_deal(dealt: RoundStarted, ruleset: Ruleset) -> str:
    draws = " ".join(f"{draw.seat}:{format_tile(draw.tile)}" for draw in dealt.draws) or EMPTY
    deal = f"{draws} / {' '.join(map(str, dealt.order))} / {format_racks(dealt.racks)} / {format_rack(dealt.pool)}"
    if dealt.table is None:
        return deal
    return f"{deal} / {format_table(as_proposed_table(dealt.table, ruleset))}"


def _draw(word: Piece) -> StartDraw:
    seat, colon, _ = word.text.partition(":")
    if not colon:
        raise word.error("is not a start draw: expected SEAT:TILE")
    return StartDraw(parse_seat(word.part(0, len(seat))), word.part(len(seat) + 1, len(word.text)).read(parse_tile))
