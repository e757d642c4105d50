"""One id of all that a commit can bring into a measurement: arms with the same id are byte-identical, and nothing is run."""

import hashlib

from driftline.contracts.words import Layout
from driftline.git import Kernels, Mirror

ENGINE_FOLDERS = ("vllm", "csrc", "cmake", "rust")
"""Of a commit of vLLM the whole engine runs, not its Mamba2 operators alone, and what it compiles is part of it."""


def measured_tree(mirror: Mirror, sha: str, kernels: Kernels) -> str:
    """The id of the kernels' folder, or of a vLLM one over its engine's folders: 40 hexadecimal digits."""
    if kernels.layout is Layout.VLLM:
        trees = [f"{folder} {mirror.tree_id(sha, folder)}" for folder in ENGINE_FOLDERS]
        return hashlib.sha1("\n".join(trees).encode(), usedforsecurity=False).hexdigest()
    tree = mirror.tree_id(sha, kernels.path)
    assert tree is not None, "the kernels were just found there"  # noqa: S101
    return tree
