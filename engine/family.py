"""The families of games, and the protocol that each implements.

Lobby, seats, clocks, absence and the order of rounds are the same in all games (`turns`). What a round is, and what
players do in it, is the family's. No rule is shared between families; within one, options make the variants.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeVar

from engine.actions import Action
from engine.deal import Shuffle
from engine.decisions import Context, Decision, TurnOver
from engine.events import Event, RoundStart
from engine.game import Game
from engine.melding import family as melding
from engine.melding import solver
from engine.melding.drafts import Draft
from engine.melding.ruleset import Ruleset
from engine.melding.table import ProposedTable
from engine.violations import Refused

RoundT = TypeVar("RoundT")
ActionT_contra = TypeVar("ActionT_contra", bound=Action, contravariant=True)
EventT_contra = TypeVar("EventT_contra", bound=Event, contravariant=True)


class Family(Protocol[RoundT, ActionT_contra, EventT_contra]):
    """The functions of a family of games. Its module has them, with the types of its rounds."""

    def deal(self, game: Game, shuffle: Shuffle | RoundStart) -> RoundStart:
        """Returns the deal of the next round, or a new deal of the round in progress."""

    def decide(self, game: Game, round_: RoundT, action: ActionT_contra, context: Context) -> Decision:
        """Decides on an action in a round."""

    def arrange(self, game: Game, round_: RoundT, seat: int, table: ProposedTable, now_ms: int) -> Draft | Refused:
        """Returns a draft of the turn in progress, or why it is refused."""

    def time_out(self, game: Game, round_: RoundT, draft: ProposedTable | None) -> TurnOver:
        """Returns the end of a turn whose deadline has passed."""

    def settle(self, game: Game, event: Event, context: Context) -> tuple[Event, ...] | TurnOver:
        """Returns what follows the last event of a turn: the next turn, or the end of the round or game."""

    def evolve(self, game: Game, event: EventT_contra) -> RoundT:
        """Returns the round after an event."""

    def may_have_searched_all_racks(self, game: Game, events: tuple[Event, ...]) -> bool:
        """Returns whether an analysis may have searched the racks of other players for these events."""


EXACT: Final = solver.EXACT
"""The default analysis of `turns.apply`."""

_FAMILIES: Final[Mapping[type[Ruleset], Family[Any, Any, Any]]] = {Ruleset: melding}


def family_of(game: Game) -> Family[Any, Any, Any]:
    """Returns the family of a game. It takes only that game's rounds, actions and events."""
    return _FAMILIES[type(game.ruleset)]
