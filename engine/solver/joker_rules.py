"""Module."""

from typing import NamedTuple

from engine.ruleset import JokersAdjacent, JokersMaxPerSet, Ruleset

UNLIMITED = 99
"""More jokers than there are."""


class JokerRules(NamedTuple):
    """How jokers may lie in a meld.

    Attributes:
        most: Jokers of a meld at most.
        balanced: Whether there may be no more jokers than numbered tiles.
        apart: Whether two jokers of a run may not be neighbors.
        leads: Whether a joker may be the first tile.
    """

    most: int
    balanced: bool
    apart: bool
    leads: bool


def joker_rules(ruleset: Ruleset) -> JokerRules:
    """How jokers may lie by a ruleset."""
    most = {JokersMaxPerSet.ONE: 1, JokersMaxPerSet.TWO: 2}.get(ruleset.jokers_max_per_set, UNLIMITED)
    return JokerRules(
        most,
        ruleset.jokers_max_per_set is JokersMaxPerSet.NOT_MORE_THAN_NATURALS,
        ruleset.jokers_adjacent is JokersAdjacent.FORBIDDEN,
        ruleset.jokers_may_lead,
    )


def are_jokers_free(ruleset: Ruleset) -> bool:
    """Whether jokers may lie in any way, beside a numbered tile at least."""
    return (
        ruleset.jokers_max_per_set is JokersMaxPerSet.UNLIMITED_WITH_ONE_NATURAL
        and ruleset.jokers_adjacent is JokersAdjacent.ALLOWED
        and ruleset.jokers_may_lead
    )
