"""The conditions on numbered tiles that kept and retrieved jokers demand."""

from engine.melding.retrieval.demands import Demands
from engine.melding.retrieval.outcome import Outcome
from engine.melding.retrieval.tables import NO_CONDITIONS, RACK, AtLeast, Conditions, FromOneOf, Tables
from engine.melding.ruleset import JokerRetrievalReuse


def of_kept(tables: Tables, stays: Outcome, melds: tuple[int, ...]) -> Conditions:
    """Returns what kept jokers demand: in mode LOCKED the whole old meld with them, else another tile of it."""
    old, _, rest = stays.departures[0]
    if rest is not None:
        return frozenset([FromOneOf(face, rest, frozenset({old})) for face in tables.old_naturals[old]])
    alone = [new for new in stays.melds if melds.count(new) == 1]
    shared = [(new, tables.old_naturals[old] & tables.new_naturals[new]) for new in alone]
    return frozenset([AtLeast(1, frozenset([(face, new, old) for face in faces])) for new, faces in shared])


def of_new_meld(tables: Tables, old: int, new: int) -> list[FromOneOf | AtLeast]:
    """Returns what NEW_MELD demands of a retrieved joker's new meld: no tile of its old meld, no whole old meld."""
    shared = tables.old_naturals[old] & tables.new_naturals[new]
    conditions: list[FromOneOf | AtLeast] = [
        FromOneOf(face, new, frozenset(tables.sources[face]) - {old}) for face in shared
    ]
    conditions += [
        not_all_in(tables, other, new) for other in tables.contained_in[new] if other not in tables.old_jokers_in
    ]
    return conditions


def of_rack(tables: Tables, new: int) -> list[FromOneOf]:
    """Returns what NEW_MELD_ALL_RACK demands in addition: all numbered tiles of the new meld come from the rack."""
    return [FromOneOf(face, new, frozenset({RACK})) for face in tables.new_naturals[new]]


def not_all_in(tables: Tables, old: int, new: int) -> AtLeast:
    """Returns the condition that some tile of an old meld is not in a new one."""
    if (old, new) not in tables.known_elsewhere:
        origins = [(face, target, old) for face in tables.old_naturals[old] for target in tables.targets[face]]
        tables.known_elsewhere[old, new] = AtLeast(1, frozenset([origin for origin in origins if origin[1] != new]))
    return tables.known_elsewhere[old, new]


def of_shared_use(tables: Tables, demands: Demands, outcome: Outcome) -> Conditions | None:
    """Returns what joker_retrieval_reuse demands where several old melds are involved; None if that is illegal."""
    if not outcome.fresh_melds:
        return NO_CONDITIONS
    shared = any(outcome.melds.count(new) > 1 for new in outcome.fresh_melds)
    if shared and demands.reuse is JokerRetrievalReuse.NEW_MELD_ALL_RACK:
        return None
    conditions: list[FromOneOf | AtLeast] = [
        not_all_in(tables, old, new) for old, new in outcome.may_contain if new in outcome.fresh_melds
    ]
    if demands.reuse is JokerRetrievalReuse.NEW_MELD_TWO_RACK_TILES:
        conditions += [_two_rack_tiles(tables, new, outcome.melds.count(new)) for new in outcome.fresh_melds]
    return frozenset(conditions)


def _two_rack_tiles(tables: Tables, new: int, old_jokers: int) -> AtLeast:
    """Returns what NEW_MELD_TWO_RACK_TILES demands of the numbered tiles.

    Jokers from the rack count too, as many as the meld can have.
    """
    from_rack = len(tables.new_jokers) - len(tables.old_jokers)
    rack_jokers = min(from_rack, tables.new_joker_count[new] - old_jokers)
    origins = [(face, new, RACK) for face in tables.new_naturals[new] if RACK in tables.sources[face]]
    return AtLeast(max(0, 2 - rack_jokers), frozenset(origins))
