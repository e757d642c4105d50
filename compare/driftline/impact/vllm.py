"""Layout vllm: from changed operators, layers and models over the imports to the models that run them. Pure."""

from collections.abc import Mapping, Sequence

from driftline.contracts.impact import LaneReach
from driftline.contracts.lane import Lane
from driftline.contracts.words import Engine
from driftline.impact.found import Change, Found, FoundModel
from driftline.impact.graph import SUFFIX, Graph
from driftline.impact.module import ARCHITECTURES
from driftline.impact.touched import touched_files
from driftline.impact.vllm_models import EXAMPLES, REGISTRY, Served, example_models, served_models

ENGINE = ("vllm/", "csrc/", "cmake/", "rust/")
"""What of a commit runs: a change elsewhere, as in tests or documents, reaches no model."""

FOLLOWED = ("vllm/model_executor/layers/", "vllm/model_executor/models/", "vllm/models/")
"""Where imports are followed from. What else of the engine changes, every model may run."""


def impact(change: Change) -> Found:
    """The models whose class refers to something that changed, and what that means for the lanes."""
    inside = [path for path in change.changed if _followed(path)]
    wide = [path for path in change.changed if path.startswith(ENGINE) and not _followed(path)]
    chosen = set(inside)
    touched = touched_files(inside, change.base(chosen.__contains__), change.head(chosen.__contains__))
    graph = Graph(change.head(_engine_source) if touched.definitions else {})
    lists = change.head({REGISTRY, EXAMPLES}.__contains__)
    served = served_models(lists.get(REGISTRY, ""))
    reached = _reached(graph, touched.definitions, served)
    models = _models(reached, served, example_models(lists.get(EXAMPLES, "")), change.lanes)
    unknown = bool(wide or touched.unread) or _leaves(graph, reached)
    return Found(
        touched=touched.files, models=models, wide=wide, unread=[*touched.unread, *graph.unread],
        lanes=[_reach(lane, models, served, everything=unknown) for lane in change.lanes],
    )  # fmt: skip


def _followed(path: str) -> bool:
    return path.startswith(FOLLOWED) and path.endswith(SUFFIX)


def _engine_source(path: str) -> bool:
    return path.startswith("vllm/") and path.endswith(SUFFIX) and path != REGISTRY


def _reached(graph: Graph, definitions: set[str], served: Sequence[Served]) -> set[str]:
    """What refers to the definitions; models that are built by the name of their architecture are followed, too."""
    reached = graph.reached_from(definitions, inside=_followed)
    named: set[str] = set()
    while True:
        by_name = {f"{ARCHITECTURES}.{each.architecture}" for each in served if each.definition in reached} - named
        if not by_name:
            return reached
        named |= by_name
        reached |= graph.reached_from(by_name, inside=_followed) - by_name


def _leaves(graph: Graph, reached: set[str]) -> bool:
    """Whether something outside of layers and models refers to the change: then every model may run it."""
    owners = {owner for owner in map(graph.owner, reached) if owner is not None}
    return any(not _followed(graph.path(owner) or "") for owner in owners)


def _models(
    reached: set[str], served: Sequence[Served], examples: Mapping[str, frozenset[str]], lanes: Sequence[Lane]
) -> list[FoundModel]:
    architectures: dict[str, list[str]] = {}
    for each in served:
        if each.definition in reached:
            architectures.setdefault(each.model, []).append(each.architecture)
    return [
        FoundModel(
            name=name, architectures=tuple(sorted(names)),
            examples=frozenset(hub_id for one in names for hub_id in examples.get(one, frozenset())),
            lanes=tuple(lane.name for lane in lanes if lane.model.architecture in names and lane.engine is Engine.VLLM),
        )
        for name, names in sorted(architectures.items())
    ]  # fmt: skip


def _reach(lane: Lane, models: Sequence[FoundModel], served: Sequence[Served], *, everything: bool) -> LaneReach:
    architecture = lane.model.architecture
    known = architecture in {each.architecture for each in served}
    seen = any(architecture in model.architectures for model in models)
    if seen or everything or not known or lane.engine is not Engine.VLLM:
        return LaneReach(lane=lane.name, reached=True)
    return LaneReach(
        lane=lane.name, reached=False, why=f"nothing that {architecture} imports at head refers to what changed"
    )
