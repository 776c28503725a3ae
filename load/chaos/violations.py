"""Violations: what a history has that must not be, each with the name of its rule."""

from dataclasses import dataclass
from typing import Final

RULES: Final = {
    "lost": "an acknowledged change is not stored",
    "doubled": "a stored change follows from no request, or two requests were acknowledged with one change",
    "order": "revisions or etags of a stored history are not a chain",
    "base": "a turn follows another state than the one that its player saw",
    "action": "a stored change is not what its request did",
    "read": "a read shows a state that never was, or misses a stored game",
    "stale": "a read shows an older state than one that was known before it began",
    "repeat": "a repeated request gets another answer, or is refused after it was executed",
    "reuse": "a request id that was used is accepted with another content",
    "refusal": "a turn is refused as outdated that was based on the current state",
    "watch": "a watcher misses a change, gets one twice, or a snapshot in place of changes",
    "token": "a token opens something after it was replaced",
    "ticket": "a join ticket takes two seats, or is void for the request that used it",
    "turn": "a seat acts whose turn it is not, or after the deadline",
    "time-out": "a turn times out before its time, twice, or out of turn",
    "late": "a time-out or a round comes long after its time, without faults that explain it",
    "absence": "a player counts as absent too early, too late, or twice",
    "bank": "a bank of time is not what the turns have left of it",
    "pause": "a round starts by itself before its time, or twice",
    "expiry": "a lobby is gone before its time, or there after it",
    "feed": "the operator's feed lacks a change, reorders changes, or has one that never was",
    "archive": "the archive lacks a finished game, or has another one",
    "tiles": "tiles are not conserved",
    "score": "the score of a round is wrong",
}
"""The meaning of each rule."""

LOSSES: Final = frozenset(
    {"lost", "read", "stale", "repeat", "refusal", "watch", "token", "ticket", "feed", "archive", "expiry"}
)
"""The rules whose violations the pages allow on a store that may lose the last changes."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule in a game."""

    rule: str
    game: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text} (game {self.game})"
