"""One Python source as the graph sees it: its top-level definitions, and what each of them refers to. Pure."""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

BODY = "<module>"
"""The definition that stands for statements that define nothing; whatever changes there may change everything."""

CUSTOM_OPERATORS = "torch.ops"
"""A pretended module: an operator registered under a name is found by that name, not by an import."""


ARCHITECTURES = "architecture"
"""A pretended module, too: a model that builds another names its architecture in the argument of that name."""


class Imports(NamedTuple):
    """What a file imports, outside of what is for type checkers only."""

    aliases: Mapping[str, set[str]]
    """local name -> dotted names it may stand for"""
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed source. `digests` tell whether a definition's code differs; layout and comments do not count."""

    name: str
    digests: Mapping[str, str]
    uses: Mapping[str, frozenset[str]]
    """definition -> dotted names it refers to, as the module's imports resolve them; own ones are `<name>.<definition>`"""
    lines: Mapping[str, int]
    """definition -> line where it first begins"""
    imported: frozenset[str]
    """dotted names of everything imported anywhere in the file"""


class Unreadable(Exception):  # noqa: N818 - what it is
    """The text is no Python that this interpreter understands."""


def parse_module(name: str, text: str, *, package: bool) -> Module:
    """The module; `package` says whether the file is an __init__.py, which decides what relative imports mean.

    Raises:
        Unreadable: the text is no Python.
    """
    try:
        tree = ast.parse(text)
        return _module(name, tree, package=package)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"{name}: {type(error).__name__}") from error


def _module(name: str, tree: ast.Module, *, package: bool) -> Module:
    aliases, imported = _imports(tree, name, package=package)
    own = {bound for statement in tree.body for bound in _bound(statement)}
    dumped: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    uses: dict[str, set[str]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom) or _for_types_only(statement) or _docstring(statement):
            continue
        found = {_resolved(chain, name, own, aliases) for chain in _chains(statement)}
        for bound in _bound(statement) or [BODY]:
            dumped.setdefault(bound, []).append(ast.dump(statement))
            lines.setdefault(bound, statement.lineno)
            uses.setdefault(bound, set()).update(found)
        for operator, function in _registered(statement):
            uses.setdefault(f"{CUSTOM_OPERATORS}.{operator}", set()).add(f"{name}.{function}")
    for alias, targets in aliases.items():
        uses.setdefault(alias, set()).update(targets)
    digests = {bound: hashlib.sha256("\n".join(parts).encode()).hexdigest() for bound, parts in dumped.items()}
    return Module(name, digests, {bound: frozenset(found) for bound, found in uses.items()}, lines, imported)


def _imports(tree: ast.Module, name: str, *, package: bool) -> Imports:
    parents = name.split(".") if package else name.split(".")[:-1]
    aliases: dict[str, set[str]] = {}
    names: set[str] = set()
    for node in _run(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                first = each.name.split(".")[0]
                aliases.setdefault(each.asname or first, set()).add(each.name if each.asname else first)
                names.add(each.name)
        elif isinstance(node, ast.ImportFrom):
            above = parents[: len(parents) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for each in node.names:
                aliases.setdefault(each.asname or each.name, set()).add(f"{source}.{each.name}")
                names.add(f"{source}.{each.name}")
    return Imports(aliases, frozenset(names))


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that can run; not the block of `if TYPE_CHECKING`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in ast.iter_child_nodes(node) if not _for_types_only(child))


def _for_types_only(node: ast.AST) -> bool:
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def _docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a top-level statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
        return [bound for child in ast.iter_child_nodes(statement) for bound in _bound_inside(child)]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    names = (node for target in targets if target is not None for node in ast.walk(target))
    return [node.id for node in names if isinstance(node, ast.Name)]


def _bound_inside(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ExceptHandler):
        return [bound for statement in node.body for bound in _bound(statement)]
    return _bound(node) if isinstance(node, ast.stmt) else []


def _chains(statement: ast.stmt) -> set[str]:
    """Every name and dotted name that the statement reads, the longest form of each, and the models that it builds."""
    found: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        dotted = _dotted(node)
        if dotted:
            found.add(dotted)
        else:
            found.update(_built(node))
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _resolved(chain: str, module: str, own: Iterable[str], aliases: Mapping[str, set[str]]) -> str:
    """The chain with its first name replaced by what an import binds it to; any other name is taken for the module's
    own, even one that is not there: it may just have been removed."""
    if chain.startswith(f"{CUSTOM_OPERATORS}."):
        return CUSTOM_OPERATORS + "." + chain.split(".")[3] if chain.count(".") > 2 else chain
    if chain.startswith(f"{ARCHITECTURES}."):
        return chain
    first, dot, rest = chain.partition(".")
    targets = aliases.get(first, set())
    if len(targets) == 1 and first not in own:
        return next(iter(targets)) + dot + rest
    return f"{module}.{chain}"


def _registered(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """(operator, function) of calls such as direct_register_custom_op(op_name="scan", op_func=scan)."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call):
        given = {word.arg: word.value for word in call.keywords}
        name, function = given.get("op_name"), given.get("op_func")
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and isinstance(function, ast.Name):
            yield name.value, function.id


def _built(node: ast.AST) -> Iterator[str]:
    """Models that are built by the name of their architecture: init_vllm_registered_model(architectures=["X"])."""
    if isinstance(node, ast.keyword) and node.arg == "architectures":
        for each in ast.walk(node.value):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield f"{ARCHITECTURES}.{each.value}"
