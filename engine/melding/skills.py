"""The rates of bots in melding games: how much each level notices. Games that are alike share a row.

The rates are such that each level wins about two of three duels against the one below it (`make bots`, docs/bots.md).
MASTER looks ahead (foresight.py). Where it cannot, EXPERT overlooks something too.
"""

from typing import Final

from engine.melding.ruleset import JokerKinds, JokersMaxPerMeld, Ruleset, TableLayout, TurnVoluntaryDraw
from engine.seats import BotLevel
from engine.skill import Skill, Skills, skills

SABRA: Final = skills((80, 36), (85, 46), (89, 57), (93, 72))
"""The row of all games without a row of their own."""
MUST_PLAY: Final = skills(*((100, 100, best) for best in (0, 20, 40, 60, 80)))
"""Games in which a player who can play must (turn_voluntary_draw): the levels differ in how often they play the best.

Oversights hardly matter there, because a bot looks until it notices a play: one that began at nothing lost only 58% of
60 duels of Shanghai. One that always lays the smallest play lost 71% of 140.
"""
NO_FORESIGHT: Final = skills((74, 27), (80, 36), (85, 46), (89, 57), (93, 72))
"""Games in which MASTER does not look ahead: SABRA's rates, a level higher. On the cross layout a bot notices the whole
table or none of it."""


def skill_of(level: BotLevel, ruleset: Ruleset) -> Skill | None:
    """Returns what a level notices under a ruleset; None if it overlooks nothing."""
    return _row(ruleset).get(level)


def looks_ahead(level: BotLevel, ruleset: Ruleset) -> bool:
    """Returns whether a level looks ahead under a ruleset.

    Only MASTER does, but not on the cross layout, with the jokers of Twist, or where a meld may have one joker. There,
    as in Tahiti, a search takes several times as long, and looking ahead won 45% of 40 duels.
    """
    return (
        level is BotLevel.MASTER
        and ruleset.table_layout is not TableLayout.GRID
        and ruleset.joker_kinds is not JokerKinds.TWIST
        and ruleset.jokers_max_per_meld is not JokersMaxPerMeld.ONE
    )


def _row(ruleset: Ruleset) -> Skills:
    if not looks_ahead(BotLevel.MASTER, ruleset):
        return NO_FORESIGHT
    return MUST_PLAY if ruleset.turn_voluntary_draw is TurnVoluntaryDraw.ONLY_IF_NO_PLAY else SABRA
