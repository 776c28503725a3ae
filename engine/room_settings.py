"""The settings of a room: what concerns the people at the table, whatever is played."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from engine.options import Needs, option, options_of

DAY: Final = 86_400
TWO_WEEKS: Final = 14 * DAY


class AbsentAction(Enum):
    """The action on the seat of an absent player (absent_after_timeouts)."""

    OFF = auto()
    RESIGN = auto()
    BOT_EASY = auto()
    BOT_MEDIUM = auto()
    BOT_HARD = auto()


class ClockFlag(Enum):
    """The penalty for an empty bank of time (clock_total_seconds)."""

    RESIGN = auto()
    TIME_OUT_EACH_TURN = auto()


class Hints(Enum):
    """The hints that a seat may get from AnalysisService in a running game."""

    OFF = auto()
    PLAY_EXISTS = auto()
    TILES = auto()
    TURN = auto()
    AGAINST_BOTS = auto()


class StartBy(Enum):
    """Who may start the first round."""

    HOST = auto()
    ANYONE = auto()
    ALL_READY = auto()
    FULL_OR_READY = auto()


class AbortBy(Enum):
    """Who may abort a game in its first round."""

    HOST = auto()
    ALL = auto()


class Spectators(Enum):
    """Whether callers without a seat may see a game that has started."""

    ALLOWED = auto()
    OFF = auto()


class RacksShown(Enum):
    """When everyone may see the racks of a round and the order of its pool."""

    HIDDEN = auto()
    AFTER_ROUND = auto()
    AFTER_GAME = auto()


class Bots(Enum):
    """Whether bots, also programs of others, may have seats."""

    ALLOWED = auto()
    OFF = auto()


class OpenSeat(Enum):
    """Who may take over the seat of a player who has resigned."""

    OFF = auto()
    BOT = auto()
    ANYONE = auto()


class DraftVisibility(Enum):
    """Who sees the table that a player is arranging."""

    OWNER = auto()
    EVERYONE = auto()


class FairDeal(Enum):
    """Whether players can check after a game that its deals were fair (engine/fair_deal.py)."""

    OFF = auto()
    COMMITTED = auto()


@dataclass(frozen=True, slots=True)
class RoomSettings:
    """The settings of a game's room, with the defaults of most presets. The contract's RoomSettings documents each."""

    turn_time_limit_seconds: int = option(120, range(TWO_WEEKS + 1), usual=(0, 1, 30, 60))
    clock_total_seconds: int = option(0, range(TWO_WEEKS + 1), usual=(0, 5, 60, TWO_WEEKS))
    clock_increment_seconds: int = option(
        0, range(DAY + 1), usual=(0, 2, 10), needs=(Needs("clock_total_seconds", range(1, TWO_WEEKS + 1)),)
    )
    clock_flag: ClockFlag = option(ClockFlag.RESIGN, needs=(Needs("clock_total_seconds", range(1, TWO_WEEKS + 1)),))
    absent_after_timeouts: int = option(3, range(101), usual=(0, 1, 2, 3))
    absent_action: AbsentAction = option(AbsentAction.BOT_MEDIUM)
    round_pause_seconds: int = option(30, range(DAY + 1), usual=(0, 1, 30))
    start_by: StartBy = option(StartBy.HOST)
    abort_by: AbortBy = option(AbortBy.HOST)
    hints: Hints = option(Hints.AGAINST_BOTS)
    spectators: Spectators = option(Spectators.ALLOWED)
    racks_shown: RacksShown = option(RacksShown.AFTER_ROUND)
    draft_visibility: DraftVisibility = option(DraftVisibility.OWNER)
    bot_pause_ms: int = option(0, range(10_001), usual=(0, 1))
    bots: Bots = option(Bots.ALLOWED)
    fair_deal: FairDeal = option(FairDeal.OFF)
    open_seat: OpenSeat = option(OpenSeat.BOT)


DEFAULT_SETTINGS: Final = RoomSettings()
SETTINGS: Final = options_of(RoomSettings)
"""The settings by name."""
