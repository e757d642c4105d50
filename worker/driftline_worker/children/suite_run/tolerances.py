"""The numbers by which test files say what counts as equal, read from their syntax. Nothing of them is run.

Found are arguments, defaults, dictionary entries and assignments of a telling name, tuples and conditions taken apart,
and what an `assert` says its left side must be below.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TELLING = re.compile(r"(^|_)(atol|rtol|tol|tols|tolerance|tolerances|max_err|max_error|max_diff)($|_)", re.IGNORECASE)
BOUND = "assert <"
"""The name of what an assertion bounds, which has none of its own."""

MOST = 2_000
"""Of all files: vLLM's Mamba tests have some fifty."""

LARGEST_FILE_BYTES = 2 << 20


@dataclass(frozen=True)
class Tolerance:
    """`scope` is the function or class around it, '' at the top of the file."""

    file: str
    line: int
    scope: str
    name: str
    value: float


def tolerances_in(tree: Path, paths: tuple[str, ...]) -> list[Tolerance]:
    """Of all Python files below the paths, in order. A file that does not parse has none: its collection says why."""
    found: list[Tolerance] = []
    for path in paths:
        place = tree / path
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            found += tolerances_of(file, str(file.relative_to(tree)))
    return found[:MOST]


def tolerances_of(file: Path, name: str) -> list[Tolerance]:
    try:
        if file.is_symlink() or file.stat().st_size > LARGEST_FILE_BYTES:
            return []
        module = ast.parse(file.read_bytes())
        found = [
            Tolerance(name, line, scope, telling, value)
            for scope, node in scoped(module, "")
            for telling, line, value in told(node)
        ]
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return sorted(found, key=lambda one: one.line)


def scoped(node: ast.AST, scope: str) -> Iterator[tuple[str, ast.AST]]:
    """Every node with the names of the functions and classes around it."""
    for child in ast.iter_child_nodes(node):
        yield scope, child
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inner = f"{scope}.{child.name}".lstrip(".") if named else scope  # type: ignore[attr-defined]
        yield from scoped(child, inner)


def told(node: ast.AST) -> Iterator[tuple[str, int, float]]:
    """(name, line, value) that this node itself says."""
    match node:
        case ast.keyword(arg=str(name), value=value):
            yield from numbers(name, value)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from assigned(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from assigned(target, value)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield from numbers(key.value, value)
        case ast.arguments():
            yield from defaults(node)
        case ast.Assert(test=test):
            yield from bounds(test)


def assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, int, float]]:
    match target, value:
        case _, ast.IfExp(body=body, orelse=orelse):
            yield from assigned(target, body)
            yield from assigned(target, orelse)
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            for name, one in zip(names, values, strict=True):
                yield from assigned(name, one)
        case ast.Name(id=name), _:
            yield from numbers(name, value)
        case ast.Attribute(attr=name), _:
            yield from numbers(name, value)


def defaults(node: ast.arguments) -> Iterator[tuple[str, int, float]]:
    positional = [*node.posonlyargs, *node.args]
    pairs = [*zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True)]
    pairs += [(name, value) for name, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value is not None]
    for name, value in pairs:
        yield from numbers(name.arg, value)


def bounds(test: ast.expr) -> Iterator[tuple[str, int, float]]:
    """What stands right of < or <= in an assertion: a float, for a whole number counts something."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            for operator, right in zip(node.ops, node.comparators, strict=True):
                said = right.value if isinstance(right, ast.Constant) else None
                if isinstance(operator, ast.Lt | ast.LtE) and isinstance(said, float):
                    yield BOUND, right.lineno, said


def numbers(name: str, value: ast.expr) -> Iterator[tuple[str, int, float]]:
    """All numbers in the value of a telling name; a call in it speaks for itself."""
    if not TELLING.search(name) or isinstance(value, ast.Call):
        return
    for node in ast.walk(value):
        said = node.value if isinstance(node, ast.Constant) else None
        if isinstance(said, int | float) and not isinstance(said, bool) and 0 <= said < float("inf"):
            yield name, node.lineno, float(said)  # type: ignore[attr-defined]  # a Constant
