"""Layout mamba2_varlen: from changed files to public operators, to backends, and to the lanes that run one. Pure."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from driftline.contracts.impact import AffectedOperator, LaneReach
from driftline.contracts.lane import Lane
from driftline.contracts.words import Engine
from driftline.impact.found import Change, Found
from driftline.impact.graph import SUFFIX, Graph
from driftline.impact.touched import touched_files

BACKENDS: Mapping[str, str] = {"reference": "reference", "torch": "torch_backend", "triton": "triton_backend"}
"""backend -> its package; which one serves a call is decided by name when it is called, so no import tells."""

OPERATORS = "operators"
DISPATCH = "backend_module"


def impact(change: Change) -> Found:
    """The operators that run something that changed, backend by backend, and the lanes that can see it."""
    folder = f"{change.kernel_path}/"
    root = str(PurePosixPath(change.kernel_path).parent)
    inside = [path for path in change.changed if path.startswith(folder)]
    sources = change.head(lambda path: path.startswith(folder) and path.endswith(SUFFIX))
    python = [path for path in inside if path.endswith(SUFFIX)]
    touched = touched_files(python, change.base(set(python).__contains__), sources, root=root)
    graph = Graph(sources, root="" if root == "." else root)
    package = PurePosixPath(change.kernel_path).name
    served = _served(sources.get(f"{folder}{OPERATORS}.py", ""))
    reached = graph.reached_from(touched.definitions, inside=lambda _: True)
    return Found(
        touched=touched.files, operators=_operators(package, reached, served),
        wide=[path for path in inside if not path.endswith(SUFFIX)], unread=[*touched.unread, *graph.unread],
        lanes=[_reach(lane, inside, _loaded(graph, package, lane.backend), change) for lane in change.lanes],
    )  # fmt: skip


def why_unseen(lane: Lane, kernel_path: str) -> str | None:
    """Why a lane sees nothing of this layout's kernels, whatever changed in them; None if it may."""
    if lane.engine is Engine.VLLM and lane.backend not in BACKENDS:
        return f"vLLM serves Mamba2 with operators of its own and loads nothing of {kernel_path}"
    return None


def _served(operators: str) -> dict[str, list[str]]:
    """Module of a backend (ssd, conv, …) -> the public operators that call it."""
    found: dict[str, list[str]] = {}
    for function, module in _dispatched(operators):
        found.setdefault(module, []).append(function)
    return found


def _dispatched(text: str) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for function in tree.body:
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == DISPATCH and len(node.args) > 1:
                    name = node.args[1]
                    if isinstance(name, ast.Constant) and isinstance(name.value, str):
                        yield function.name, name.value


def _operators(package: str, reached: set[str], served: Mapping[str, Sequence[str]]) -> list[AffectedOperator]:
    """By the backends' modules that are reached, or on all of them where the operator itself is."""
    found: dict[str, set[str]] = {}
    for module, operators in served.items():
        for operator in operators:
            if f"{package}.{OPERATORS}.{operator}" in reached:
                found.setdefault(operator, set()).update(BACKENDS)
            for backend, folder in BACKENDS.items():
                if f"{package}.{folder}.{module}.{operator}" in reached:
                    found.setdefault(operator, set()).add(backend)
    return [AffectedOperator(operator=name, backends=sorted(backends)) for name, backends in sorted(found.items())]


def _loaded(graph: Graph, package: str, backend: str) -> set[str]:
    """Modules that a backend can load: all but the other backends' packages, and of those what it imports."""
    others = [f"{package}.{folder}." for name, folder in BACKENDS.items() if name != backend]
    loaded: set[str] = set()
    waiting = [name for name in graph.modules if not f"{name}.".startswith(tuple(others))]
    while waiting:
        name = waiting.pop()
        if name in loaded:
            continue
        loaded.add(name)
        module = graph.module(name)
        if module is None:
            return set(graph.modules)
        waiting += [found for target in module.imported for found in graph.modules_of(target)]
    return loaded


def _reach(lane: Lane, inside: Sequence[str], loaded: set[str], change: Change) -> LaneReach:
    unseen = why_unseen(lane, change.kernel_path)
    if unseen is not None:
        return LaneReach(lane=lane.name, reached=False, why=unseen)
    folder = f"{change.kernel_path}/"
    own = f"{PurePosixPath(change.kernel_path).name}."
    modules = {own + _module(path.removeprefix(folder)) if path.endswith(SUFFIX) else "" for path in inside}
    known = lane.backend in BACKENDS and modules and "" not in modules
    if known and not modules & loaded and f"{own}__init__" not in modules:
        names = sorted({path.removeprefix(folder).partition("/")[0] for path in inside})
        return LaneReach(lane=lane.name, reached=False, why=f"{lane.backend} loads nothing of {', '.join(names)}")
    return LaneReach(lane=lane.name, reached=True)


def _module(inside: str) -> str:
    return inside.removesuffix(SUFFIX).removesuffix("/__init__").replace("/", ".")
