"""The limits on jokers in a meld."""

from typing import NamedTuple

from engine.melding.ruleset import JokersAdjacent, JokersMaxPerMeld, Ruleset

UNLIMITED = 99
"""More jokers than any tile set has."""


class JokerRules(NamedTuple):
    """The limits on jokers in a meld.

    Attributes:
        most: The most jokers of a meld.
        balanced: Whether there may be no more jokers than numbered tiles.
        apart: Whether two jokers of a run may not be neighbors.
        leads: Whether a joker may be the first tile.
    """

    most: int
    balanced: bool
    apart: bool
    leads: bool


def joker_rules(ruleset: Ruleset) -> JokerRules:
    """Returns the limits of a ruleset."""
    most = {JokersMaxPerMeld.ONE: 1, JokersMaxPerMeld.TWO: 2}.get(ruleset.jokers_max_per_meld, UNLIMITED)
    return JokerRules(
        most,
        ruleset.jokers_max_per_meld is JokersMaxPerMeld.NOT_MORE_THAN_NATURALS,
        ruleset.jokers_adjacent is JokersAdjacent.FORBIDDEN,
        ruleset.jokers_may_lead,
    )


def are_jokers_free(ruleset: Ruleset, jokers: int) -> bool:
    """Returns whether the only limit on a number of jokers is one numbered tile per meld."""
    most = {JokersMaxPerMeld.ONE: 1, JokersMaxPerMeld.TWO: 2, JokersMaxPerMeld.NOT_MORE_THAN_NATURALS: 1}
    return not jokers or (
        jokers <= most.get(ruleset.jokers_max_per_meld, UNLIMITED)
        and (jokers == 1 or ruleset.jokers_adjacent is JokersAdjacent.ALLOWED)
        and ruleset.jokers_may_lead
    )
