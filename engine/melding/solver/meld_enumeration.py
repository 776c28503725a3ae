"""Enumerates the melds that some tiles can form."""

from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

from engine.melding.melds import Meld, MeldKind, ProposedMeld, must_declare, read_meld
from engine.melding.ruleset import JokersDeclaration, MeldOrder, Ruleset
from engine.melding.run_shape import RunShape, run_shape
from engine.melding.solver.joker_rules import joker_rules
from engine.melding.solver.problem import FACES
from engine.melding.solver.solution import with_declared_jokers
from engine.melding.table import joker_roles
from engine.tiles import JOKER, Tile, value_of

Melds = tuple[Meld, ...]


Shape = tuple[MeldKind, tuple[Tile, ...]]
"""The faces of a meld; jokers stand for some of them."""


def possible_melds(
    tiles: Counter[Tile], ruleset: Ruleset, is_allowed: Callable[[Shape], bool] = lambda _: True
) -> Iterator[Meld]:
    """Yields every meld of some tiles, without variants in the order of a group or the faces of its jokers.

    Args:
        tiles: The tiles.
        ruleset: Defines the melds.
        is_allowed: Selects the shapes.
    """
    most = min(tiles[JOKER], joker_rules(ruleset).most)
    rulesets = ruleset, _without_declarations(ruleset)
    for kind, faces in filter(is_allowed, _shapes(ruleset.geometry_colors, run_shape(ruleset))):
        missing = frozenset([place for place, face in enumerate(faces) if not tiles[face]])
        for jokers in range(len(missing), min(most, len(faces) - 1) + 1):
            yield from _with_jokers((kind, faces), missing, jokers, rulesets)


@lru_cache
def _shapes(colors: int, shape: RunShape) -> tuple[Shape, ...]:
    runs = [
        (MeldKind.RUN, tuple(FACES[value - 1][color] for value in values))
        for color in range(colors)
        for _, values in sorted(shape.runs.items())
    ]
    groups = [
        (MeldKind.GROUP, chosen)
        for faces in FACES
        for size in range(3, colors + 1)
        for chosen in combinations(faces[:colors], size)
    ]
    return (*runs, *groups)


def _with_jokers(
    shape: Shape, missing: frozenset[int], jokers: int, rulesets: tuple[Ruleset, Ruleset]
) -> Iterator[Meld]:
    """Yields the melds of a shape with a number of jokers, some of them at the missing places.

    Args:
        shape: The shape.
        missing: The places for which there is no tile.
        jokers: The number of jokers.
        rulesets: The ruleset, and its variant that requires no declaration.
    """
    kind, faces = shape
    ruleset, silent = rulesets
    others = [place for place in range(len(faces)) if place not in missing]
    for extra in combinations(others, jokers - len(missing)):
        meld = read_meld(_proposed(kind, faces, missing.union(extra), ruleset), silent)
        if isinstance(meld, Meld):
            yield with_declared_jokers(meld, ruleset)


def _proposed(kind: MeldKind, faces: tuple[Tile, ...], joker_places: Set[int], ruleset: Ruleset) -> ProposedMeld:
    """Returns faces with jokers in some places, declared in a run whose order does not determine their faces."""
    tiles = tuple(JOKER if place in joker_places else face for place, face in enumerate(faces))
    if kind is MeldKind.GROUP:
        jokers_last = tuple(sorted(tiles, key=lambda t: (t == JOKER, t)))  # jokers_may_lead may be false
        return ProposedMeld(jokers_last, kind)
    if ruleset.meld_order is MeldOrder.STRICT:
        return ProposedMeld(tiles, kind)
    return ProposedMeld(tiles, kind, tuple(faces[place] for place in sorted(joker_places)))


def useful_declarations(meld: Meld, table: Melds, ruleset: Ruleset) -> Iterator[Meld]:
    """Yields a group with other declared joker faces: all if required, else those that help jokers of the table.

    A joker of the table may need its face declared again, or for the first time.
    """
    if meld.kind is MeldKind.RUN or not meld.joker_faces:
        return
    for declaration in _useful_combinations(meld, table, ruleset):
        reading = read_meld(ProposedMeld(meld.tiles, meld.kind, declaration), ruleset)
        if isinstance(reading, Meld) and reading != meld:
            yield reading


def _useful_combinations(meld: Meld, table: Melds, ruleset: Ruleset) -> Iterator[tuple[Tile, ...]]:
    value = value_of(next(t for t in meld.tiles if t != JOKER))
    faces = [face for face in FACES[value - 1][: ruleset.geometry_colors] if face not in meld.tiles]
    declarations = combinations(faces, len(meld.joker_faces))
    if must_declare(len(meld.joker_faces), ruleset):
        return declarations
    useful = _useful_faces(meld, table)
    return (declaration for declaration in declarations if not useful.isdisjoint(declaration))


def _useful_faces(meld: Meld, table: Melds) -> set[Tile]:
    """Returns the faces of a group's jokers that help jokers of the table only if declared.

    The rules check whether the faces of a joker are among those that an old joker stood for. Without a declaration
    these are all possible faces; if all of them are, no declaration is needed.
    """
    undeclared = {face for faces in meld.joker_faces for face in faces}
    return {face for faces in joker_roles(table) if not undeclared <= set(faces) for face in faces}


def _without_declarations(ruleset: Ruleset) -> Ruleset:
    """Returns the variant of a ruleset that requires no declaration."""
    if ruleset.jokers_declaration is JokersDeclaration.POSITIONAL:
        return ruleset
    return replace(ruleset, jokers_declaration=JokersDeclaration.POSITIONAL)
