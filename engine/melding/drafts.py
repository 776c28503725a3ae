"""A draft: the table as a player arranges it during a turn, before playing.

A draft changes no game. It is stored beside the game, belongs to one turn, and is an argument of that turn's time-out.
"""

from dataclasses import dataclass

from engine.melding.table import ProposedTable


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft of a turn.

    Attributes:
        seat: The seat of its player, who has the turn.
        turn_revision: The revision of its turn (Turn.revision).
        table: The melds, complete or not. Every tile is the player's, or is visible to all.
        is_legal: Whether the table is a legal play, without a pull from the River and without a call of the win.
        number: Higher than that of every earlier draft of the turn; 0 before it is stored.
    """

    seat: int
    turn_revision: int
    table: ProposedTable
    is_legal: bool
    number: int = 0
