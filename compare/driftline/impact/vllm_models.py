"""vLLM's own lists: which class serves an architecture, and which models of the hub its tests name for it. Pure."""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

REGISTRY = "vllm/model_executor/models/registry.py"
EXAMPLES = "tests/models/registry.py"
MODELS = "vllm.model_executor.models"


class Served(NamedTuple):
    """The class that serves an architecture, as a dotted name."""

    architecture: str
    definition: str

    @property
    def model(self) -> str:
        """granitemoehybrid"""
        return self.definition.rpartition(".")[0].rpartition(".")[2]


def served_models(registry: str) -> list[Served]:
    """From the text of vLLM's registry; [] if it is no Python."""
    found = []
    for key, value in _entries(registry):
        if isinstance(value, ast.Tuple):
            constants = [each.value for each in value.elts if isinstance(each, ast.Constant)]
            words = [word for word in constants if isinstance(word, str)]
            if len(words) >= 2:
                place = words[0] if words[0].startswith("vllm.") else f"{MODELS}.{words[0]}"
                found.append(Served(key, f"{place}.{words[1]}"))
    return found


def example_models(examples: str) -> Mapping[str, frozenset[str]]:
    """architecture -> hub ids, from the text of the registry that vLLM's model tests use."""
    found: dict[str, frozenset[str]] = {}
    for key, value in _entries(examples):
        if isinstance(value, ast.Call):
            words = {node.value for node in ast.walk(value) if isinstance(node, ast.Constant)}
            ids = {word for word in words if isinstance(word, str) and word.count("/") == 1 and " " not in word}
            found[key] = found.get(key, frozenset()) | ids
    return found


def _entries(text: str) -> Iterator[tuple[str, ast.expr]]:
    """Every entry with a string as key of every dict in a file."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
