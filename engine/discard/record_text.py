"""The text of the moves of a draw-and-discard game.

```
4 10.000 0 deal O4 / 1 4 3 2 / 1{R1 R2} 2{B3 F} / {K1 K2}    indicator / order / racks / pool
5 12.500 1 discard R2
6 14.000 4 take R2                                           draw K1 from the pool
7 15.250 4 finish K9 [R1 R2 R3] | [B6 K6 O6]
8 16.000 4 meld [R1 R2 R3] | [B6 K6 O6]                      the whole table
9 16.500 4 putback K1                                        draw K1 from the pool instead
10 17.000 4 foot K9 [R1 R2 R3 R4] | [B6 K6 O6]               the whole table
```

In a game with jokers a deal begins with `J`, and with the trump if there is one: `deal J R8 / ...`.
"""

from dataclasses import replace

from engine.discard.events import HandsDealt
from engine.discard.notation import format_face_up, format_hand, parse_face_up, parse_hand
from engine.discard.ruleset import Ruleset
from engine.moves import Move, MoveKind
from engine.notation import (
    Piece,
    format_rack,
    format_racks,
    format_tiles,
    parse_pool,
    parse_racks,
    parse_seat,
    parse_tiles,
)


class MoveText:
    """Formats and parses what follows the verbs of moves."""

    def __init__(self, _ruleset: Ruleset) -> None:
        """No text depends on the ruleset."""

    @staticmethod
    def format(move: Move) -> str:
        """Returns what follows the verb of a move."""
        if isinstance(move.dealt, HandsDealt):
            return _format_deal(move.dealt)
        tiles = format_tiles(move.tiles)
        hand = format_hand(move.hand) if move.kind in {MoveKind.FINISH, MoveKind.FOOT, MoveKind.LAY_TILES} else ""
        return f"{tiles} {hand}".strip()

    @staticmethod
    def parse(move: Move, rest: Piece, round_number: int) -> Move:
        """Returns a move with what follows its verb. Raises NotationError."""
        match move.kind:
            case MoveKind.DEAL:
                return replace(move, dealt=_deal(rest, round_number))
            case MoveKind.LAY_TILES:
                return replace(move, hand=rest.read(parse_hand))
            case MoveKind.FINISH | MoveKind.FOOT if words := rest.words():
                hand = rest.after(words[0]).read(parse_hand)
                return replace(move, tiles=words[0].read(parse_tiles), hand=hand)
            case _:
                return replace(move, tiles=rest.read(parse_tiles))


def _format_deal(dealt: HandsDealt) -> str:
    order, racks = " ".join(map(str, dealt.order)), format_racks(dealt.racks)
    return f"{format_face_up(dealt.indicator, dealt.trump)} / {order} / {racks} / {format_rack(dealt.pool)}"


def _deal(rest: Piece, round_number: int) -> HandsDealt:
    parts = rest.parts("///", "indicator / order / racks / pool")
    indicator, trump = parse_face_up(next(parts))
    seats = tuple(map(parse_seat, next(parts).words()))
    return HandsDealt(round_number, seats, indicator, parse_racks(next(parts)), parse_pool(next(parts)), trump)
