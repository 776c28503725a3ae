"""The retrieval options of a ruleset as one value."""

from typing import Final, NamedTuple

from engine.melding.ruleset import (
    JokerRetrievalGroupOfThree,
    JokerRetrievalMode,
    JokerRetrievalReuse,
    JokerRetrievalSameMeld,
    JokerRetrievalSource,
    Ruleset,
)


class Demands(NamedTuple):
    """The demands of a ruleset on retrieval. Dropping one shows whether a play breaks it.

    Attributes:
        mode: joker_retrieval_mode.
        must_replace: A tile must take the place of a retrieved joker.
        rack_only: That tile must come from the rack (joker_retrieval_source).
        both_colors: The joker of a group of three needs both missing colors (joker_retrieval_group_of_three).
        end_is_free: A joker at the end of a long run needs no replacement (joker_retrieval_end_of_run_free).
        other_meld: A retrieved joker may not return to its old meld (joker_retrieval_same_meld).
        reuse: joker_retrieval_reuse.
        widens: A kept joker may stand for more faces than before, as in a group that has lost a color.
    """

    mode: JokerRetrievalMode
    must_replace: bool = False
    rack_only: bool = False
    both_colors: bool = False
    end_is_free: bool = False
    other_meld: bool = False
    reuse: JokerRetrievalReuse = JokerRetrievalReuse.ANY_MELD
    widens: bool = False


NO_DEMANDS: Final = Demands(JokerRetrievalMode.FREE)


def demands_of(ruleset: Ruleset) -> Demands:
    """Returns the demands of a ruleset."""
    mode = ruleset.joker_retrieval_mode
    replaces = mode is not JokerRetrievalMode.FREE
    both_colors = ruleset.joker_retrieval_group_of_three is JokerRetrievalGroupOfThree.BOTH_COLORS
    same_meld_forbidden = ruleset.joker_retrieval_same_meld is JokerRetrievalSameMeld.FORBIDDEN
    return Demands(
        mode,
        must_replace=replaces,
        rack_only=replaces and ruleset.joker_retrieval_source is JokerRetrievalSource.RACK_ONLY,
        both_colors=replaces and both_colors,
        end_is_free=replaces and ruleset.joker_retrieval_end_of_run_free,
        other_meld=same_meld_forbidden and mode is not JokerRetrievalMode.OFF,
        reuse=ruleset.joker_retrieval_reuse,
    )


def limits_retrieval(ruleset: Ruleset) -> bool:
    """Returns whether a ruleset limits how the jokers of the table may be moved."""
    return demands_of(ruleset) != NO_DEMANDS
