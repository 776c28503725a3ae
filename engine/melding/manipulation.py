"""The rules of the option manipulation: how a player may change the melds on the table."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from engine.matching import unmatched
from engine.melding.melds import Meld, MeldKind
from engine.melding.play import BasePlay
from engine.melding.ruleset import Manipulation
from engine.tiles import Tile
from engine.violations import Reason, Violation


def melds_only_grow(play: BasePlay) -> Iterator[Violation]:
    """Manipulation OFF: each old meld is contained unchanged in a distinct new one, which may have more tiles."""
    if play.ruleset.manipulation is Manipulation.OFF and play.may_use_table:
        yield from play.least_wrong(partial(_without_successor, succeeds=_has_grown, reason=Reason.TABLE_MELD_CHANGED))


def no_meld_is_dissolved(play: BasePlay) -> Iterator[Violation]:
    """Manipulation PRIMITIVES_ONLY: each old meld keeps two tiles in a distinct new meld of the same kind."""
    if play.ruleset.manipulation is Manipulation.PRIMITIVES_ONLY and play.may_use_table:
        yield from play.least_wrong(partial(_without_successor, succeeds=_lives_on, reason=Reason.TABLE_MELD_DISSOLVED))


def _without_successor(
    play: BasePlay, succeeds: Callable[["_LaidMeld", "_LaidMeld"], bool], reason: Reason
) -> tuple[Violation, ...]:
    """Returns a violation for each old meld that has no successor in a maximum matching."""
    play.effort.take(len(play.table_before) * len(play.melds))
    olds, news = (
        tuple([_LaidMeld(meld, frozenset(meld.tiles)) for meld in melds]) for melds in (play.table_before, play.melds)
    )
    choices = [[place for place, new in enumerate(news) if succeeds(old, new)] for old in olds]
    return tuple(Violation(reason, play.subject, play.table_before[old].tiles) for old in unmatched(choices))


class _LaidMeld(NamedTuple):
    """A meld and the set of its tiles."""

    meld: Meld
    faces: frozenset[Tile]


def _has_grown(before: _LaidMeld, after: _LaidMeld) -> bool:
    """Returns whether a new meld contains an old one unchanged."""
    old, new = before.meld, after.meld
    if old.kind is not new.kind or not before.faces <= after.faces:
        return False
    if old.kind is MeldKind.RUN:
        length = len(old.tiles)
        return any(new.tiles[start : start + length] == old.tiles for start in range(len(new.tiles) - length + 1))
    roles = [set(faces) for faces in new.joker_faces]
    kept = all(any(role <= set(faces) for role in roles) for faces in old.joker_faces)
    return len(old.joker_faces) <= len(new.joker_faces) and kept


def _lives_on(before: _LaidMeld, after: _LaidMeld) -> bool:
    """Returns whether two melds of the same kind share two tiles. A meld has each numbered face at most once."""
    if before.meld.kind is not after.meld.kind:
        return False
    shared = len(before.faces & after.faces)
    return shared > 1 or (shared == 1 and min(len(before.meld.joker_faces), len(after.meld.joker_faces)) > 1)
