"""Which retrieval options a play breaks."""

from collections import Counter
from typing import Final

from engine.effort import Effort, TooComplexError
from engine.melding.play import STEPS, BasePlay
from engine.melding.retrieval.demands import NO_DEMANDS, Demands, demands_of
from engine.melding.retrieval.search import is_possible
from engine.melding.retrieval.tables import Tables
from engine.melding.ruleset import JokerRetrievalMode, JokerRetrievalReuse, Ruleset
from engine.melding.table import Melds
from engine.tiles import JOKER, Tile
from engine.violations import Reason


def retrieval_reasons(play: BasePlay) -> tuple[Reason, ...]:
    """Returns why no assignment of tiles makes a play legal with regard to the jokers of the table; empty if one does.

    The play must be settled: its melds are valid, no tile is missing, and every new tile is the player's own.

    Raises:
        TooComplexError: The search exceeds the play's effort.
    """
    demands = demands_of(play.ruleset)
    moved = any(JOKER in meld.tiles for meld in play.changed_melds)
    if not moved or demands == NO_DEMANDS:
        return ()
    tables = Tables(play.table_before, play.melds, play.tiles_played, play.effort)
    if is_possible(tables, demands):
        return ()
    return _replacement_reasons(tables, demands) + _use_reasons(tables, demands) or _joint_reasons(tables, demands)


def may_be_retrieved(before: Melds, after: Melds, played: Counter[Tile], ruleset: Ruleset) -> bool:
    """Returns whether some assignment of tiles moves the jokers of the old table legally.

    Also returns True where the answer takes more steps than judging a turn may.
    """
    try:
        return is_possible(Tables(before, after, played, Effort(STEPS)), demands_of(ruleset))
    except TooComplexError:
        return True


def _replacement_reasons(tables: Tables, demands: Demands) -> tuple[Reason, ...]:
    """Returns the violations in how jokers left their melds, whatever they were used for."""
    alone = demands._replace(other_meld=False, reuse=JokerRetrievalReuse.ANY_MELD)
    if is_possible(tables, alone):
        return ()
    milder = {
        (Reason.JOKER_REPLACEMENT_NOT_FROM_RACK,): alone._replace(rack_only=False),
        (Reason.JOKER_GROUP_NEEDS_BOTH_COLORS,): alone._replace(both_colors=False),
        (Reason.JOKER_REPLACEMENT_NOT_FROM_RACK, Reason.JOKER_GROUP_NEEDS_BOTH_COLORS): alone._replace(
            rack_only=False, both_colors=False
        ),
    }
    for reasons, others in milder.items():
        if is_possible(tables, others):
            return reasons
    return (_NOT_REPLACED[demands.mode],)


_NOT_REPLACED: Final = {
    JokerRetrievalMode.OFF: Reason.JOKER_RETRIEVAL_FORBIDDEN,
    JokerRetrievalMode.REPLACE: Reason.JOKER_NOT_REPLACED,
    JokerRetrievalMode.LOCKED: Reason.JOKER_MELD_LOCKED,
}

_NOT_REUSED: Final[dict[JokerRetrievalReuse, Reason]] = {
    JokerRetrievalReuse.NEW_MELD: Reason.JOKER_NOT_IN_NEW_MELD,
    JokerRetrievalReuse.NEW_MELD_IF_REPLACED: Reason.JOKER_NOT_IN_NEW_MELD,
    JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES: Reason.JOKER_REUSE_NEEDS_TWO_RACK_TILES,
    JokerRetrievalReuse.NEW_MELD_ALL_RACK: Reason.JOKER_REUSE_NEEDS_RACK_ONLY,
}


def _use_reasons(tables: Tables, demands: Demands) -> tuple[Reason, ...]:
    """Returns the violations in how retrieved jokers were used, however they left their melds.

    Where taking a tile next to a joker breaks a rule of its own, the joker counts as kept, not as reused.
    """
    free = NO_DEMANDS._replace(widens=demands.must_replace)
    found = []
    if demands.other_meld and not is_possible(tables, free._replace(other_meld=True)):
        found.append(Reason.JOKER_RETURNED_TO_SAME_MELD)
    for reuse in _ever_stricter(demands.reuse):
        if not is_possible(tables, free._replace(reuse=reuse)):
            found.append(_NOT_REUSED[reuse])
            break
    return tuple(found)


def _joint_reasons(tables: Tables, demands: Demands) -> tuple[Reason, ...]:
    """Returns the first demand that cannot be met together with those before it, where each can be met alone."""
    met = demands._replace(reuse=JokerRetrievalReuse.ANY_MELD)
    if not is_possible(tables, met):
        return (Reason.JOKER_RETURNED_TO_SAME_MELD,)
    return next(
        (_NOT_REUSED[reuse],)
        for reuse in _ever_stricter(demands.reuse)
        if not is_possible(tables, met._replace(reuse=reuse))
    )


def _ever_stricter(reuse: JokerRetrievalReuse) -> tuple[JokerRetrievalReuse, ...]:
    match reuse:
        case JokerRetrievalReuse.ANY_MELD:
            return ()
        case JokerRetrievalReuse.NEW_MELD_IF_REPLACED:
            return (reuse,)
        case _:
            return tuple(dict.fromkeys((JokerRetrievalReuse.NEW_MELD, reuse)))
