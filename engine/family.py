"""The families of games, and the protocol that each implements.

Lobby, seats, clocks, absence and the order of rounds are the same in all games (`turns`). What a round is, and what
players do in it, is the family's. No rule is shared between families; within one, options make the variants.

A new family is a package with these functions, a row in the table, and its types in `unions`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar, get_args

from engine.actions import Action
from engine.deal import Shuffle
from engine.decisions import Context, Decision, TurnOutcome, TurnOver
from engine.discard import bots as discard_bots
from engine.discard import family as discard
from engine.discard import moves as discard_moves
from engine.discard import presets as discard_presets
from engine.discard import record_text as discard_record_text
from engine.discard.actions import DiscardAction
from engine.discard.events import DiscardEvent, HandsDealt
from engine.discard.round import DiscardRound
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.effort import Budget
from engine.events import Event, TurnEvent
from engine.game import Game
from engine.melding import bots, moves, presets, record_text, solver
from engine.melding import family as melding
from engine.melding.actions import MeldingAction
from engine.melding.events import MeldingEvent, RoundStarted
from engine.melding.round import MeldingRound
from engine.melding.ruleset import Ruleset as MeldingRuleset
from engine.moves import Move, MoveKind
from engine.notation import Piece
from engine.options import Option, OptionProblem, PresetText, TextForm
from engine.room_settings import RoomSettings
from engine.seats import BotLevel
from engine.unions import (
    BotAction,
    Draft,
    FamilyAction,
    FamilyEvent,
    FamilyEventView,
    ProposedTable,
    Round,
    RoundStart,
    RoundView,
    Ruleset,
)
from engine.views import GameView

RulesetT_contra = TypeVar("RulesetT_contra", contravariant=True)
RoundT = TypeVar("RoundT")
StartT = TypeVar("StartT")
ActionT_contra = TypeVar("ActionT_contra", bound=Action, contravariant=True)
EventT_contra = TypeVar("EventT_contra", bound=Event, contravariant=True)


class Family(Protocol[RulesetT_contra, StartT, RoundT, ActionT_contra, EventT_contra]):
    """The functions of a family of games. Its module has them, with the types of its rounds."""

    def deal(self, game: Game, shuffle: Shuffle | StartT) -> StartT:
        """Returns the deal of the next round, or a new deal of the round in progress."""

    def decide(self, game: Game, round_: RoundT, action: ActionT_contra, context: Context) -> Decision:
        """Decides on an action in a round."""

    def time_out(self, game: Game, round_: RoundT, draft: ProposedTable | None) -> TurnOver:
        """Returns the end of a turn whose deadline has passed."""

    def settle(self, game: Game, event: Event, context: Context) -> tuple[Event, ...] | TurnOver:
        """Returns what follows the last event of a turn: the next turn, or the end of the round or game."""

    def evolve(self, game: Game, event: TurnEvent | EventT_contra) -> RoundT:
        """Returns the round after an event."""

    def see(self, round_: RoundT, active: tuple[int, ...], seat: int | None, draft: Draft | None) -> RoundView:
        """Returns the view of a round.

        Args:
            round_: The round.
            active: The seats that may still have a turn in it; none once it is over.
            seat: The viewer.
            draft: The last draft that the viewer may see.
        """

    def see_event(self, event: EventT_contra, seat: int | None) -> FamilyEventView:
        """Returns the view of an event."""

    def outcome(self, events: tuple[Event, ...]) -> TurnOutcome:
        """Returns the tiles played, their points and the tiles drawn in a player's own turn."""

    def may_search(self, ruleset: RulesetT_contra) -> bool:
        """Returns whether decisions of a game may search for plays, which can take seconds."""

    def can_play_on(self, game: Game, seat: int) -> bool:
        """Returns whether the rules know how a new player goes on at a seat in the round in progress (open_seat)."""

    def may_have_searched_all_racks(self, game: Game, events: tuple[Event, ...]) -> bool:
        """Returns whether an analysis may have searched the racks of other players for these events."""


class Bots(Protocol):
    """How bots of a family choose an action: from the view of their seat, whose turn it is or that must vote."""

    def choose_action(self, view: GameView, level: BotLevel, budget: Budget) -> BotAction:
        """Returns the action of a bot of a level. If its search exceeds the budget, it takes the best found so far."""

    def action_without_search(self, view: GameView) -> BotAction | None:
        """Returns an action that needs no search; None if the bot must look for a play."""

    def action_without_play(self, view: GameView) -> BotAction:
        """Returns an action that plays no tiles."""


class Moves(Protocol):
    """The moves of a family in records."""

    @property
    def BY_BOTS(self) -> frozenset[MoveKind]:  # noqa: N802 - a constant of the module
        """The moves that a bot may make for an absent player."""

    def move_of(self, game: Game, revision: int, time_ms: int, events: tuple[Event, ...]) -> Move | None:
        """Returns the move that led to the events of a change; None for changes that are not part of a record."""

    def is_complete(self, move: Move) -> bool:
        """Returns whether a move has the parts that its kind needs, and no other, but its seat and its player."""

    def actions(self, game: Game, move: Move) -> Iterator[Action]:
        """Yields actions that may have been the move; an event does not say everything that led to it."""


class Presets(Protocol):
    """The named rulesets of a family, and what can be chosen beside them. No two families have presets of one name."""

    @property
    def PRESETS(self) -> Mapping[Any, Ruleset]:  # noqa: N802 - a constant of the module
        """The rulesets, by preset."""

    @property
    def PRESET_TEXTS(self) -> Mapping[Any, PresetText]:  # noqa: N802 - a constant of the module
        """Their texts."""

    @property
    def GAME_OPTIONS(self) -> Mapping[str, Option]:  # noqa: N802 - a constant of the module
        """The options of the rules and the settings of the room, by name."""

    @property
    def OTHER_OPTIONS(self) -> Mapping[str, TextForm]:  # noqa: N802 - a constant of the module
        """The parts of a ruleset that are no options with a row, by name."""

    def preset_named(self, name: str) -> Any:  # noqa: ANN401 - each family has an enum of its own
        """Returns the preset of a name; None if there is none."""

    def chosen(self, preset: Any, options: Mapping[str, Any]) -> tuple[Ruleset, RoomSettings]:  # noqa: ANN401 - as above
        """Returns the ruleset and the settings of a preset with some options and settings replaced."""

    def stated(self, ruleset: Any, settings: RoomSettings) -> Mapping[str, object]:  # noqa: ANN401 - as above
        """Returns the options and settings that `chosen` needs beside the preset, with their values."""

    def problems_of(self, ruleset: Any, settings: RoomSettings) -> tuple[OptionProblem, ...]:  # noqa: ANN401 - as above
        """Returns the problems of a ruleset and of settings."""


class MoveText(Protocol):
    """What follows the verbs of moves in the text of a record (record_text.py), under one ruleset."""

    def format(self, move: Move) -> str:
        """Returns it; empty for nothing."""

    def parse(self, move: Move, rest: Piece, round_number: int) -> Move:
        """Returns a move with it. A deal is that of a round. Raises NotationError."""


@dataclass(frozen=True, slots=True)
class _Row(Generic[RulesetT_contra, StartT, RoundT, ActionT_contra, EventT_contra]):
    """The functions, actions and events of a family."""

    family: Family[RulesetT_contra, StartT, RoundT, ActionT_contra, EventT_contra]
    bots: Bots
    moves: Moves
    presets: Presets
    move_text: Callable[[RulesetT_contra], MoveText]
    actions: tuple[type[ActionT_contra], ...]
    events: tuple[type[EventT_contra], ...]


_MELDING: Final[_Row[MeldingRuleset, RoundStarted, MeldingRound, MeldingAction, MeldingEvent]] = _Row(
    melding, bots, moves, presets, record_text.MoveText, get_args(MeldingAction), get_args(MeldingEvent)
)
_DISCARD: Final[_Row[DiscardRuleset, HandsDealt, DiscardRound, DiscardAction, DiscardEvent]] = _Row(
    discard,
    discard_bots,
    discard_moves,
    discard_presets,
    discard_record_text.MoveText,
    get_args(DiscardAction),
    get_args(DiscardEvent),
)
_FAMILIES: Final[Mapping[type[Ruleset], _Row[Any, Any, Any, Any, Any]]] = {
    MeldingRuleset: _MELDING,
    DiscardRuleset: _DISCARD,
}
_BY_EVENT: Final = {event: row.family for row in _FAMILIES.values() for event in row.events}

DEFAULT_RULESET: Final = MeldingRuleset()
"""The rules of a game that names none."""
EXACT: Final = solver.EXACT
"""The default analysis of `turns.apply`."""


def family_of(game: Game) -> Family[Ruleset, RoundStart, Round, FamilyAction, FamilyEvent]:
    """Returns the family of a game. It takes only that game's rounds, actions and events."""
    return _FAMILIES[type(game.ruleset)].family


def has_action(game: Game, action: FamilyAction) -> bool:
    """Returns whether an action is one of a game's family."""
    return type(action) in _FAMILIES[type(game.ruleset)].actions


def family_of_event(event: FamilyEvent) -> Family[Ruleset, RoundStart, Round, FamilyAction, FamilyEvent]:
    """Returns the family of an event."""
    return _BY_EVENT[type(event)]


def bots_of(view: GameView) -> Bots:
    """Returns how bots play the game of a view."""
    return _FAMILIES[type(view.ruleset)].bots


def moves_of(game: Game) -> Moves:
    """Returns how records have the moves of a game."""
    return _FAMILIES[type(game.ruleset)].moves


def move_text_of(ruleset: Ruleset) -> MoveText:
    """Returns how the text of a record has the moves of games under a ruleset."""
    return _FAMILIES[type(ruleset)].move_text(ruleset)


def presets_of(ruleset: Ruleset) -> Presets:
    """Returns the presets of a ruleset's family."""
    return _FAMILIES[type(ruleset)].presets


@dataclass(frozen=True, slots=True)
class NamedRuleset:
    """The ruleset of a preset, its settings of a room and its texts."""

    ruleset: Ruleset
    settings: RoomSettings
    text: PresetText


def named_rulesets() -> tuple[NamedRuleset, ...]:
    """Returns the presets of all families."""
    return tuple(
        NamedRuleset(ruleset, presets.chosen(preset, {})[1], presets.PRESET_TEXTS[preset])
        for presets in (row.presets for row in _FAMILIES.values())
        for preset, ruleset in presets.PRESETS.items()
    )


def presets_with(name: str) -> Presets | None:
    """Returns the presets of the family that has one of a name; None if none has."""
    return next((row.presets for row in _FAMILIES.values() if row.presets.preset_named(name)), None)
