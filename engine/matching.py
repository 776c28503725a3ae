"""Pairing things off so that as many as possible find a partner of their own."""

from collections.abc import Sequence


def unpaired(choices: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Who is left without a partner in a best pairing, where each may have one of those they name, and nobody twice.

    An earlier one is never left over for a later one's sake (augmenting paths).
    """
    taken: dict[int, int] = {}
    return tuple(one for one in range(len(choices)) if not _pair(one, choices, taken, set()))


def _pair(one: int, choices: Sequence[Sequence[int]], taken: dict[int, int], tried: set[int]) -> bool:
    """Finds a partner, moving others to another one where needed."""
    for partner in choices[one]:
        if partner not in tried:
            tried.add(partner)
            if partner not in taken or _pair(taken[partner], choices, taken, tried):
                taken[partner] = one
                return True
    return False
