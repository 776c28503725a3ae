"""The unions of what each family of games adds to what all games share: here a family names its types.

All other modules of what games share import them from here, and the family's functions from `family`. Where a union
gets a member, mypy lists the places that must know it.
"""

from typing import TypeAlias

from engine.discard.actions import BotAction as DiscardBotAction
from engine.discard.actions import DiscardAction
from engine.discard.actions import TurnAction as DiscardTurnAction
from engine.discard.events import DiscardEvent, HandsDealt, OpenDiscardEvent
from engine.discard.events import TurnAct as DiscardTurnAct
from engine.discard.round import DiscardRound
from engine.discard.ruleset import Preset as DiscardPreset
from engine.discard.ruleset import Ruleset as DiscardRuleset
from engine.discard.views import DiscardEventView, DiscardView
from engine.melding.actions import BotAction as MeldingBotAction
from engine.melding.actions import MeldingAction
from engine.melding.actions import TurnAction as MeldingTurnAction
from engine.melding.analysis import Analysis as MeldingAnalysis
from engine.melding.drafts import Draft as MeldingDraft
from engine.melding.events import FreeEvent as MeldingFreeEvent
from engine.melding.events import MeldingEvent, OpenMeldingEvent, RoundStarted
from engine.melding.events import TurnAct as MeldingTurnAct
from engine.melding.round import MeldingRound
from engine.melding.ruleset import Preset as MeldingPreset
from engine.melding.ruleset import Ruleset as MeldingRuleset
from engine.melding.table import ProposedTable as ProposedMelds
from engine.melding.views import MeldingEventView, MeldingView

Ruleset: TypeAlias = MeldingRuleset | DiscardRuleset
"""The rules of a game. Every ruleset has `preset`, `players_min`, `players_max`, `points_at_start` and
`tiles`."""

Preset: TypeAlias = MeldingPreset | DiscardPreset
"""The names of presets. No two families have one of the same name."""

Round: TypeAlias = MeldingRound | DiscardRound
"""A round. Every one has `number`, `order`, `racks`, `pool`, `turn`, `to_act` and `names_its_seats` (MeldingRound)."""

RoundView: TypeAlias = MeldingView | DiscardView
"""What a viewer sees of a round beyond what all rounds have."""

RoundStart: TypeAlias = RoundStarted | HandsDealt
"""The event that starts a round."""

FamilyEvent: TypeAlias = MeldingEvent | DiscardEvent
"""Events of a round, but those that all games have (events.CommonEvent)."""

TurnAct: TypeAlias = MeldingTurnAct | DiscardTurnAct
"""Events of what a player did in a turn, who is then present."""

FreeEvent: TypeAlias = MeldingFreeEvent
"""Events of actions that cost their player nothing, not even the turn."""

OpenFamilyEvent: TypeAlias = OpenMeldingEvent | OpenDiscardEvent
"""Events of a round without hidden parts, which are their own views."""

FamilyEventView: TypeAlias = MeldingEventView | DiscardEventView
"""Views of the events of a round."""

FamilyAction: TypeAlias = MeldingAction | DiscardAction
"""Actions in a round."""

TurnAction: TypeAlias = MeldingTurnAction | DiscardTurnAction
"""Actions of the player whose turn it is."""

BotAction: TypeAlias = MeldingBotAction | DiscardBotAction
"""Actions that a bot may choose."""

ProposedTable: TypeAlias = ProposedMelds
"""A table as a player arranges it."""

Draft: TypeAlias = MeldingDraft
"""A table that a player has arranged and not played."""

Analysis: TypeAlias = MeldingAnalysis
"""Answers what only a search can tell, where the rules need it."""
