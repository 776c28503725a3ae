"""The mutants of a module of the engine: copies of its syntax tree with one small change each.

CHANGES maps a kind of node to the function that yields its changed copies. Docstrings and types are never changed.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[1] / "engine"
LONGEST_SHOWN = 60
"""The most characters of code that a report shows."""

NodePath = tuple[tuple[str, int | None], ...]
"""The path from the root to a node: field names, each with an index if the field is a list."""


@dataclass(frozen=True, eq=False)
class Mutant:
    """A module with one change.

    Attributes:
        module: The path below engine/ without its suffix, as in "melding/solver/search".
        scope: The function or class that holds the change; the module's name outside of them.
        line: The line of the change.
        change: The code before and after, for reports.
        in_function: Whether the changed code runs on a call rather than at import.
        path: The path to the changed node.
        after: The new node.
    """

    module: str
    scope: str
    line: int
    change: str
    in_function: bool
    path: NodePath
    after: ast.AST

    @property
    def name(self) -> str:
        """The place and the change, for reports."""
        return f"{self.module}.py:{self.line} {self.scope}: {self.change}"

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the changed module."""
        return replaced(tree_of(self.module), self.path, self.after)

    @property
    def import_name(self) -> str:
        """The dotted name by which the module is imported."""
        return f"engine.{self.module.removesuffix('/__init__').replace('/', '.')}"

    @property
    def is_package(self) -> bool:
        """Whether the module is a package's `__init__`."""
        return self.module.endswith("/__init__")

    @property
    def source(self) -> str:
        """The changed module as text."""
        return ast.unparse(self.tree)


def tree_of(module: str) -> ast.Module:
    """Returns the syntax tree of a module of the engine."""
    return ast.parse((ENGINE / f"{module}.py").read_text())


COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: Mapping[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.Mod: (ast.FloorDiv,),
    ast.FloorDiv: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
FUNCTIONS = {
    "any": "all",
    "all": "any",
    "min": "max",
    "max": "min",
    "in_order": "tuple",
    "sorted": "list",
}


def enums() -> dict[str, tuple[str, ...]]:
    """Returns the names of the members of each enum of the engine."""
    found = {}
    for path in ENGINE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Enum" for base in node.bases):
                assigned = (line.targets[0] for line in node.body if isinstance(line, ast.Assign))
                found[node.name] = tuple(target.id for target in assigned if isinstance(target, ast.Name))
    return found


ENUMS = enums()


def changed_comparison(node: ast.Compare) -> Iterator[ast.expr]:
    """Yields the comparison with each operator replaced by a related one."""
    for index, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            yield ast.Compare(node.left, [*node.ops[:index], other(), *node.ops[index + 1 :]], node.comparators)


def changed_operator(node: ast.BinOp) -> Iterator[ast.expr]:
    """Yields the operation with another operator."""
    for other in OPERATORS.get(type(node.op), ()):
        yield ast.BinOp(node.left, other(), node.right)


def changed_boolean(node: ast.BoolOp) -> Iterator[ast.expr]:
    """Yields the condition with `and` and `or` swapped, then without each operand."""
    yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    for index in range(len(node.values)):
        left = node.values[:index] + node.values[index + 1 :]
        yield ast.BoolOp(node.op, left) if len(left) > 1 else left[0]


def changed_sign(node: ast.UnaryOp) -> Iterator[ast.expr]:
    """Yields the operand without its sign or negation."""
    yield node.operand


def changed_conditional(node: ast.IfExp) -> Iterator[ast.expr]:
    """Yields each branch of a conditional expression."""
    yield node.body
    yield node.orelse


def changed_constant(node: ast.Constant) -> Iterator[ast.expr]:
    """Yields the negated boolean, the next and the previous number, or another string."""
    match node.value:
        case bool():
            yield ast.Constant(not node.value)
        case int():
            yield ast.Constant(node.value + 1)
            yield ast.Constant(node.value - 1)
        case str():
            yield ast.Constant(f"{node.value}?")
        case _:
            pass


def changed_member(node: ast.Attribute) -> Iterator[ast.expr]:
    """Yields the next member of the enum."""
    values = ENUMS.get(node.value.id, ()) if isinstance(node.value, ast.Name) else ()
    if node.attr in values:
        following = values[(values.index(node.attr) + 1) % len(values)]
        yield ast.Attribute(node.value, following, ast.Load())


def changed_slice(node: ast.Subscript) -> Iterator[ast.expr]:
    """Yields the slice without its start, then without its end."""
    if isinstance(node.slice, ast.Slice):
        if node.slice.lower:
            yield ast.Subscript(node.value, ast.Slice(None, node.slice.upper), ast.Load())
        if node.slice.upper:
            yield ast.Subscript(node.value, ast.Slice(node.slice.lower, None), ast.Load())


def changed_call(node: ast.Call) -> Iterator[ast.expr]:
    """Yields a call of a related function, then the call without each keyword argument."""
    if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        yield ast.Call(ast.Name(FUNCTIONS[node.func.id], ast.Load()), node.args, node.keywords)
    for keyword in node.keywords:
        if not isinstance(keyword.value, ast.Constant):
            yield ast.Call(node.func, node.args, [other for other in node.keywords if other is not keyword])


def changed_comprehension(node: ast.comprehension) -> Iterator[ast.comprehension]:
    """Yields the comprehension without each of its conditions."""
    for condition in node.ifs:
        ifs = [other for other in node.ifs if other is not condition]
        yield ast.comprehension(node.target, node.iter, ifs, node.is_async)


def changed_branch(node: ast.If) -> Iterator[ast.stmt]:
    """Yields the statement with a condition that is always true, then always false."""
    for value in (True, False):
        yield ast.If(ast.Constant(value), node.body, node.orelse)


def changed_return(node: ast.Return) -> Iterator[ast.stmt]:
    """Yields a return of None."""
    if node.value and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))


def changed_statement(node: ast.Expr | ast.AugAssign) -> Iterator[ast.stmt]:
    """Yields a statement that does nothing. A `yield` becomes `yield from ()`: the function stays a generator."""
    is_generator = isinstance(node.value, ast.Yield | ast.YieldFrom)
    yield ast.Expr(ast.YieldFrom(ast.Tuple([], ast.Load()))) if is_generator else ast.Pass()


def changed_jump(node: ast.Continue | ast.Break) -> Iterator[ast.stmt]:
    """Yields `break` for `continue` and the reverse."""
    yield ast.Break() if isinstance(node, ast.Continue) else ast.Continue()


CHANGES: Mapping[type[ast.AST], Callable[..., Iterator[ast.AST]]] = {
    ast.Compare: changed_comparison,
    ast.BinOp: changed_operator,
    ast.BoolOp: changed_boolean,
    ast.UnaryOp: changed_sign,
    ast.IfExp: changed_conditional,
    ast.Constant: changed_constant,
    ast.Attribute: changed_member,
    ast.Subscript: changed_slice,
    ast.Call: changed_call,
    ast.comprehension: changed_comprehension,
    ast.If: changed_branch,
    ast.Return: changed_return,
    ast.Expr: changed_statement,
    ast.AugAssign: changed_statement,
    ast.Continue: changed_jump,
    ast.Break: changed_jump,
}

UNCHANGED = {
    ast.arg: {"annotation"},
    ast.FunctionDef: {"returns", "decorator_list"},
    ast.AnnAssign: {"annotation"},
}
"""Fields that are never changed: annotations and decorators."""


@dataclass(frozen=True)
class Spot:
    """A node of a module, with its path and its place."""

    node: ast.AST
    path: NodePath
    scope: str
    line: int
    in_function: bool


def spots(spot: Spot) -> Iterator[Spot]:
    """Yields a node and its descendants, without docstrings and types."""
    if isinstance(spot.node, ast.Expr) and isinstance(spot.node.value, ast.Constant):
        return  # a docstring
    yield spot
    node, scope, in_function = spot.node, spot.scope, spot.in_function
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        scope = node.name if len(spot.path) == 1 else f"{scope}.{node.name}"
    for field, value in ast.iter_fields(node):
        if field in UNCHANGED.get(type(node), ()):
            continue
        inside = in_function or (isinstance(node, ast.FunctionDef) and field == "body")
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                line = getattr(child, "lineno", spot.line)
                yield from spots(Spot(child, (*spot.path, (field, index)), scope, line, inside))


def mutants_of(module: str) -> Iterator[Mutant]:
    """Yields every mutant of a module of the engine."""
    tree = tree_of(module)
    at_import = called_at_import(tree)
    for spot in spots(Spot(tree, (), module, 0, in_function=False)):
        for after in CHANGES.get(type(spot.node), no_change)(spot.node):
            in_function = spot.in_function and spot.scope not in at_import
            change = f"{shown(spot.node)} → {shown(after)}"
            yield Mutant(module, spot.scope, spot.line, change, in_function, spot.path, after)


def called_at_import(tree: ast.Module) -> set[str]:
    """Returns the names of the functions that run while the module is imported."""
    outside = (line for line in tree.body if not isinstance(line, ast.FunctionDef | ast.ClassDef))
    calls = (node for line in outside for node in ast.walk(line) if isinstance(node, ast.Call))
    return {ast.unparse(call.func) for call in calls}


def unchanged(module: str, *, in_function: bool) -> Mutant:
    """Returns a mutant without a change, which shows that the tests pass at all."""
    return Mutant(module, "", 0, "", in_function, (), ast.Pass())


def no_change(_: ast.AST) -> Iterator[ast.AST]:
    """Yields nothing."""
    yield from ()


def shown(node: ast.AST) -> str:
    """Returns the source of a node on one line, shortened."""
    match node:
        case ast.If():
            text = f"if {ast.unparse(node.test)}"
        case ast.comprehension():
            text = ast.unparse(node).strip()
        case _:
            text = ast.unparse(node)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def replaced(tree: ast.Module, path: NodePath, after: ast.AST) -> ast.Module:
    """Puts another node at a path of a tree, and returns the tree."""
    if not path:
        return tree
    node: ast.AST = tree
    for field, index in path[:-1]:
        node = getattr(node, field) if index is None else getattr(node, field)[index]
    field, index = path[-1]
    if index is None:
        setattr(node, field, after)
    else:
        getattr(node, field)[index] = after
    return ast.fix_missing_locations(tree)
