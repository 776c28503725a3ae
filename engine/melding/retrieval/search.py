"""Step 2: combines the outcomes of the old melds into one for all of them."""

from collections.abc import Iterator

from engine.melding.retrieval.conditions import of_shared_use
from engine.melding.retrieval.demands import Demands
from engine.melding.retrieval.if_replaced import replace_distinct_jokers
from engine.melding.retrieval.origins import are_satisfiable
from engine.melding.retrieval.outcome import Outcome
from engine.melding.retrieval.outcomes import outcomes_of_meld
from engine.melding.retrieval.replacements import are_unlocked, may_be_retrieved
from engine.melding.retrieval.tables import Tables


def is_possible(tables: Tables, demands: Demands) -> bool:
    """Returns whether some assignment of tiles meets the demands. Raises TooComplexError."""
    if demands not in tables.known_possible:
        outcomes = _outcomes(tables, demands)
        tables.known_possible[demands] = any(
            are_unlocked(tables, demands, outcome) and (not outcome.replacing or replace_distinct_jokers(outcome))
            for outcome in outcomes
        )
    return tables.known_possible[demands]


def _outcomes(tables: Tables, demands: Demands) -> Iterator[Outcome]:
    """Yields the distinct outcomes for all old melds. Old melds with the fewest outcomes are combined first."""
    each = []
    for old in tables.old_jokers_in:
        outcomes = []
        for outcome in outcomes_of_meld(tables, demands, old):
            tables.effort.take(16)
            outcomes.append(outcome)
        if not outcomes:
            return
        each.append(outcomes)
    each.sort(key=len)
    waiting = [(0, Outcome())]
    seen = set()
    while waiting:
        done, so_far = waiting.pop()
        if done == len(each):
            yield so_far
            continue
        tables.effort.take(2 * len(each[done]))
        for outcome in each[done]:
            if _has_room(tables, so_far, outcome) and (more := so_far.combined(outcome)) not in seen:
                tables.effort.take(16)
                seen.add(more)
                if _may_be_legal(tables, demands, more):
                    waiting.append((done + 1, more))


def _has_room(tables: Tables, so_far: Outcome, outcome: Outcome) -> bool:
    """Returns whether the new melds have room for more jokers. Of equal new melds the first must be used first."""
    melds = so_far.melds + outcome.melds
    for new in outcome.melds:
        if melds.count(new) > tables.new_joker_count[new] or tables.previous_twin.get(new, new) not in melds:
            return False
    roles = so_far.roles + outcome.roles
    return all(roles.count(role) <= tables.new_role_count[role] for role in outcome.roles)


def _may_be_legal(tables: Tables, demands: Demands, outcome: Outcome) -> bool:
    """Returns whether an outcome for some old melds can still become legal."""
    retrieved = tuple([role for departure in outcome.departures for role in departure.retrieved])
    if not may_be_retrieved(tables, demands, retrieved):
        return False
    conditions = of_shared_use(tables, demands, outcome)
    return conditions is not None and are_satisfiable(tables, outcome.conditions | conditions)
