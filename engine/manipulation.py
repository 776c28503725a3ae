"""How the melds of the table may be changed (option manipulation): freely, without dissolving any, or not at all."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from engine.matching import unpaired
from engine.melds import Meld, MeldKind
from engine.play import BasePlay
from engine.ruleset import Manipulation
from engine.tiles import Tile
from engine.violations import Reason, Violation


def melds_only_grow(play: BasePlay) -> Iterator[Violation]:
    """Manipulation NONE: each meld of the table lies as it was in a meld of its own, with tiles added at most."""
    if play.ruleset.manipulation is Manipulation.NONE and play.may_use_table:
        yield from play.least_wrong(partial(_without_successor, succeeds=_has_grown, reason=Reason.TABLE_MELD_CHANGED))


def no_meld_is_dissolved(play: BasePlay) -> Iterator[Violation]:
    """Manipulation PRIMITIVES_ONLY: each meld of the table keeps two tiles in a meld of its kind of its own."""
    if play.ruleset.manipulation is Manipulation.PRIMITIVES_ONLY and play.may_use_table:
        yield from play.least_wrong(partial(_without_successor, succeeds=_lives_on, reason=Reason.TABLE_MELD_DISSOLVED))


def _without_successor(
    play: BasePlay, succeeds: Callable[["_Lying", "_Lying"], bool], reason: Reason
) -> tuple[Violation, ...]:
    """A violation for each meld of the table for which no meld of the new table is left, in the best pairing."""
    play.effort.take(len(play.table_before) * len(play.melds))
    olds, news = (
        tuple([_Lying(meld, frozenset(meld.tiles)) for meld in melds]) for melds in (play.table_before, play.melds)
    )
    choices = [[place for place, new in enumerate(news) if succeeds(old, new)] for old in olds]
    return tuple(Violation(reason, play.subject, play.table_before[old].tiles) for old in unpaired(choices))


class _Lying(NamedTuple):
    """A meld, and the faces in it, a joker's own among them."""

    meld: Meld
    faces: frozenset[Tile]


def _has_grown(before: _Lying, after: _Lying) -> bool:
    old, new = before.meld, after.meld
    if old.kind is not new.kind or not before.faces <= after.faces:
        return False
    if old.kind is MeldKind.RUN:
        length = len(old.tiles)
        return any(new.tiles[start : start + length] == old.tiles for start in range(len(new.tiles) - length + 1))
    roles = [set(faces) for faces in new.joker_faces]
    kept = all(any(role <= set(faces) for role in roles) for faces in old.joker_faces)
    return len(old.joker_faces) <= len(new.joker_faces) and kept


def _lives_on(before: _Lying, after: _Lying) -> bool:
    """Whether two melds of one kind have two tiles in common; a meld has each numbered face once."""
    if before.meld.kind is not after.meld.kind:
        return False
    shared = len(before.faces & after.faces)
    return shared > 1 or (shared == 1 and min(len(before.meld.joker_faces), len(after.meld.joker_faces)) > 1)
