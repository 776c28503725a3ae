"""How the melds of the table may be changed (option manipulation): freely, without dissolving any, or not at all."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from engine.melds import Meld, MeldKind
from engine.pairing import unpaired
from engine.play import Play
from engine.ruleset import Manipulation
from engine.violations import Reason, Violation


def melds_only_grow(play: Play) -> Iterator[Violation]:
    """Manipulation NONE: each meld of the table lies as it was in a meld of its own, with tiles added at most."""
    if play.ruleset.manipulation is Manipulation.NONE and play.may_use_table:
        yield from play.least_wrong(partial(_without_successor, succeeds=_has_grown, reason=Reason.TABLE_MELD_CHANGED))


def no_meld_is_dissolved(play: Play) -> Iterator[Violation]:
    """Manipulation PRIMITIVES_ONLY: each meld of the table keeps two tiles in a meld of its kind of its own."""
    if play.ruleset.manipulation is Manipulation.PRIMITIVES_ONLY and play.may_use_table:
        yield from play.least_wrong(partial(_without_successor, succeeds=_lives_on, reason=Reason.TABLE_MELD_DISSOLVED))


def _without_successor(play: Play, succeeds: Callable[[Meld, Meld], bool], reason: Reason) -> tuple[Violation, ...]:
    """A violation for each meld of the table for which no meld of the new table is left, in the best pairing."""
    choices = [[place for place, new in enumerate(play.melds) if succeeds(old, new)] for old in play.table_before]
    return tuple(Violation(reason, play.subject, play.table_before[old].tiles) for old in unpaired(choices))


def _has_grown(old: Meld, new: Meld) -> bool:
    if old.kind is not new.kind:
        return False
    if old.kind is MeldKind.RUN:
        length = len(old.tiles)
        return any(new.tiles[start : start + length] == old.tiles for start in range(len(new.tiles) - length + 1))
    roles = [set(faces) for faces in new.joker_faces]
    kept = all(any(role <= set(faces) for role in roles) for faces in old.joker_faces)
    return Counter(old.tiles) <= Counter(new.tiles) and kept


def _lives_on(old: Meld, new: Meld) -> bool:
    return old.kind is new.kind and (Counter(old.tiles) & Counter(new.tiles)).total() > 1
