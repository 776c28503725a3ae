"""The choices of a room's settings: what concerns the people at the table, whatever is played."""

from enum import Enum, auto


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


class DraftVisibility(Enum):
    """Who sees the table that a player is arranging."""

    OWNER = auto()
    EVERYONE = auto()
