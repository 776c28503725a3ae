"""A stored game at one revision, how it is found, and how long it is kept."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from engine.game import Aborted, Finished, Game, Lobby, Phase, Playing, RoundOver
from engine.timers import due_ms
from engine.unions import RoundStart

EMPTIED_MS: Final = 60_000
"""How long a lobby is kept after all people have left it. Within it, a repeated LeaveGame still finds its answer."""


class GameState(Enum):
    """The kind of a game's phase, by which games are listed and counted."""

    LOBBY = "lobby"
    PLAYING = "playing"
    ROUND_OVER = "round_over"
    FINISHED = "finished"
    ABORTED = "aborted"

    def __init__(self, name: str) -> None:
        self.is_over = name in {"finished", "aborted"}
        """Whether the game can no longer be played."""


STATE_OF_PHASE: Final[dict[type[Phase], GameState]] = {
    Lobby: GameState.LOBBY,
    Playing: GameState.PLAYING,
    RoundOver: GameState.ROUND_OVER,
    Finished: GameState.FINISHED,
    Aborted: GameState.ABORTED,
}


class Visibility(Enum):
    """Whether strangers find a game in lists."""

    PUBLIC = "public"
    UNLISTED = "unlisted"


@dataclass(frozen=True, slots=True)
class Listing:
    """How a game is found.

    Attributes:
        visibility: Whether it is in public lists.
        join_code: A short code in place of its id; unique among games in the lobby.
        labels: Keys and values that its creator chose, by key.
        key: The name of the key that created it, whose callers alone find it; empty for none.
    """

    visibility: Visibility = Visibility.UNLISTED
    join_code: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class SeatToken:
    """The SHA-256 of a seat's token, or of the host token (seat HOST). The token itself is never stored."""

    seat: int
    digest: bytes


DEPARTED_REFS_MAX: Final = 32
"""How many references of players who have left are kept."""


@dataclass(frozen=True, slots=True)
class PlayerRef:
    """The operator's reference to a person who joined.

    Attributes:
        revision: The revision at which the person joined; with the seat it identifies the event.
        seat: The seat.
        text: The reference.
        has_left: Whether the person has left the lobby.
    """

    revision: int
    seat: int
    text: str
    has_left: bool = False


@dataclass(frozen=True, slots=True)
class OperatorData:
    """What only the operator sees of a game.

    Attributes:
        labels: Keys and values that its creator chose, by key.
        player_refs: References to its people, those who have left included, in the order in which they joined.
    """

    labels: tuple[tuple[str, str], ...] = ()
    player_refs: tuple[PlayerRef, ...] = ()

    def has(self, ref: str, besides: int = 0) -> bool:
        """Returns whether a person with a reference is in the game, in another seat than `besides`."""
        return any(known.text == ref and known.seat != besides and not known.has_left for known in self.player_refs)

    def ref_of(self, seat: int) -> str:
        """Returns the reference of the person in a seat; "" if there is none."""
        present = (ref.text for ref in reversed(self.player_refs) if ref.seat == seat and not ref.has_left)
        return next(present, "")

    def joined(self, ref: PlayerRef) -> "OperatorData":
        """Returns the same after a person has joined."""
        return replace(self, player_refs=(*self.player_refs, ref))

    def left(self, seat: int) -> "OperatorData":
        """Returns the same after the person in a seat has left. Only the last DEPARTED_REFS_MAX of those are kept."""
        refs = [replace(ref, has_left=True) if ref.seat == seat else ref for ref in self.player_refs]
        departed = [ref for ref in refs if ref.has_left][-DEPARTED_REFS_MAX:]
        return replace(self, player_refs=tuple(ref for ref in refs if not ref.has_left or ref in departed))


NO_OPERATOR_DATA: Final = OperatorData()
"""Without labels and references."""

KICKED_MAX: Final = 32
"""Most people of a lobby who are known as kicked."""


@dataclass(frozen=True, slots=True)
class Kicked:
    """A person whom the host has removed from the lobby: the name, and the operator's reference, empty for none."""

    name: str
    player_ref: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A stored game at one revision.

    Attributes:
        game_id: 32 hexadecimal digits.
        game: The whole game, hidden tiles included.
        etag: Identifies the game's history, see `lineage`.
        tokens: One for each taken seat, and the host token.
        created_ms: When it was created, in milliseconds since 1970 by the store's clock.
        updated_ms: When it last changed.
        listing: How it is found.
        is_emptied: Whether all people have left its lobby. It is then in no list and expires after EMPTIED_MS.
        operator_data: What only the operator sees.
        kicked: Who was kicked from the lobby, the last KICKED_MAX; empty after the start.
        invited: The tokens of the game before that take reserved seats, one for each (Game.reserved).
        position: The start of the first round of a lobby that begins with a position. Nothing may show it before.
        deal_nonce: With the store's secret, the secret of the game's deals (fair_deal); empty for none.
    """

    game_id: str
    game: Game
    etag: str
    tokens: tuple[SeatToken, ...]
    created_ms: int
    updated_ms: int
    listing: Listing = Listing()
    is_emptied: bool = False
    operator_data: OperatorData = NO_OPERATOR_DATA
    kicked: tuple[Kicked, ...] = ()
    invited: tuple[SeatToken, ...] = ()
    position: RoundStart | None = None
    deal_nonce: bytes = b""

    @property
    def state(self) -> GameState:
        """The kind of the game's phase."""
        return STATE_OF_PHASE[type(self.game.phase)]

    @property
    def has_record(self) -> bool:
        """Whether the game is over and was dealt, so that it has a record and is archived."""
        return self.state.is_over and self.game.round is not None


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long a game is kept, in seconds: in the lobby, started, over, and finished but not archived yet.

    The time begins when the game is next due, otherwise with its last change, so a long turn does not outlast its game.
    """

    lobby: int
    started: int
    finished: int
    unarchived: int = 0

    def milliseconds(self, record: Record) -> int:
        """Returns how long a game is kept after a change."""
        if record.is_emptied:
            return EMPTIED_MS
        state = record.state
        if state.is_over:
            return (max(self.finished, self.unarchived) if record.has_record else self.finished) * 1000
        seconds = self.lobby if state is GameState.LOBBY else self.started
        at_ms = due_ms(record.game)
        return seconds * 1000 + (0 if at_ms is None else max(0, at_ms - record.updated_ms))


def code_name(join_code: str) -> str:
    """Returns the name under which a game's join code points at the game."""
    return f"code:{join_code}"
