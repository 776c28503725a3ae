"""The limits of callers: what each address, and each key with a quota, may do in a time or hold at once."""

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from service.errors import Overloaded, TooManyDrafts, TooManyGames, TooManyGuesses
from service.runtime.admission import Admission
from service.runtime.origins import (
    CHANGES_PER_SECOND,
    DRAFTS_PER_SECOND,
    GAMES_PER_MINUTE,
    JOIN_GUESSES_PER_MINUTE,
    STREAMS,
    WATCHES,
)
from service.runtime.rate_limit import SECOND, Attempts, RateLimit
from service.settings import Settings

RateName: TypeAlias = Literal["changes", "drafts"]
"""The Limits that count each call of an RPC."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of RPCs.

    Attributes:
        games: New games.
        guesses: Unknown join codes.
        drafts: Drafts.
        changes: Changes that are no turns.
        watches: Open watches.
    """

    games: Attempts
    guesses: RateLimit
    drafts: RateLimit
    changes: RateLimit
    watches: Admission


def limits_of(settings: Settings) -> Limits:
    """Returns the limits of a server."""
    return Limits(
        Attempts(RateLimit(settings.games_per_minute, TooManyGames, GAMES_PER_MINUTE)),
        RateLimit(settings.join_guesses_per_minute, TooManyGuesses, JOIN_GUESSES_PER_MINUTE),
        RateLimit(
            settings.drafts_per_second,
            partial(TooManyDrafts, "drafts"),
            DRAFTS_PER_SECOND,
            SECOND,
            partial(TooManyDrafts, "drafts", is_of_key=True),
        ),
        RateLimit(
            settings.changes_per_second,
            partial(Overloaded, "changes"),
            CHANGES_PER_SECOND,
            SECOND,
            partial(Overloaded, "changes", is_of_key=True),
        ),
        Admission(settings.max_watches, settings.peer_share, "watches", WATCHES),
    )


def stream_limit(settings: Settings) -> Admission:
    """Returns the bound on the StreamValidateTurns of one listener."""
    return Admission(settings.validation_streams, settings.peer_share, "streams", STREAMS)
