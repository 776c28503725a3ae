"""Only some modules rely on a table being a tuple of melds: a table of another layout is a change of these alone."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = re.compile(r"(^|[._])table(_before|_after)?$")
CONSUMERS = {
    "Counter",
    "any",
    "all",
    "chain",
    "enumerate",
    "filter",
    "list",
    "map",
    "set",
    "sorted",
    "sum",
    "tuple",
    "zip",
}

ALLOWED = {
    "engine/melding/bots.py": "a bot adds tiles to one meld after the other",
    "engine/melding/notation.py": "the text of a table is that of its melds",
    "engine/melding/retrieval/tables.py": "joker retrieval finds where each meld went",
    "engine/melding/solver/constraints.py": "the solver lays melds: these pass old ones to their problems",
    "engine/melding/solver/few_tiles.py": "as above",
    "engine/melding/solver/fewest_changes.py": "as above",
    "engine/melding/solver/partitions.py": "as above",
    "engine/melding/solver/restricted_problem.py": "as above",
    "engine/melding/solver/tile_assignment.py": "the explanation of a turn follows each meld",
    "engine/melding/solver/turn_problem.py": "the solver, as above",
    "engine/melding/solver/turn_search.py": "as above",
    "engine/melding/record_text.py": "the text of a record's tables",
    "service/app/drafts.py": "the table as a player sends it",
    "service/cli/analyze.py": "the text of tables",
    "service/codec/melding.py": "the contract's tables have melds",
    "service/codec/tiles.py": "as above",
    "service/codec/validation.py": "as above",
}
"""The modules that may go through the melds of a table, and why."""


def consumed(node: ast.AST) -> Iterator[ast.expr]:
    """Yields the expressions whose elements a node goes through."""
    match node:
        case ast.For() | ast.comprehension():
            yield node.iter
        case ast.Starred():
            yield node.value
        case ast.Call(func=ast.Name(id=name)) if name in CONSUMERS:
            yield from node.args


def goes_through_a_table(source: str) -> bool:
    expressions = (expression for node in ast.walk(ast.parse(source)) for expression in consumed(node))
    return any(TABLE.search(ast.unparse(expression)) for expression in expressions)


def test_exactly_the_named_modules_go_through_the_melds_of_a_table() -> None:
    modules = [path for package in ("engine", "service") for path in (ROOT / package).rglob("*.py")]
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in modules}
    found = {name for name, source in sources.items() if "meld" in source and goes_through_a_table(source)}
    assert found == ALLOWED.keys(), "use or add a function of engine/melding/table.py"


def test_a_loop_is_found() -> None:
    assert goes_through_a_table("[meld for meld in play.table_before]")
    assert goes_through_a_table("tuple(map(f, table))")
    assert not goes_through_a_table("tiles_on(table)")
