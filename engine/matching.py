"""Maximum bipartite matching by augmenting paths."""

from collections.abc import Sequence


def unmatched(choices: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Returns the items that stay without a partner in a maximum matching.

    An earlier item never loses its partner to a later one.

    Args:
        choices: For each item, its possible partners. A partner is matched once.
    """
    taken: dict[int, int] = {}
    return tuple(item for item in range(len(choices)) if not _match(item, choices, taken, set()))


def _match(item: int, choices: Sequence[Sequence[int]], taken: dict[int, int], tried: set[int]) -> bool:
    """Returns whether an item gets a partner. Rematches other items where needed."""
    for partner in choices[item]:
        if partner not in tried:
            tried.add(partner)
            if partner not in taken or _match(taken[partner], choices, taken, tried):
                taken[partner] = item
                return True
    return False
