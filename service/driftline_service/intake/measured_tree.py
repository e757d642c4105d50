"""One id of all that a commit can bring into a measurement: arms with the same id are byte-identical, and nothing is run."""

from driftline.contracts.words import Layout
from driftline.git import Kernels, Mirror
from driftline.git.engine_files import engine_id


def measured_tree(mirror: Mirror, sha: str, kernels: Kernels) -> str:
    """40 hexadecimal digits: the id of the kernels' folder, or of a commit of vLLM one of all that its engine is made of, for
    the whole engine runs there and not its Mamba2 operators alone."""
    if kernels.layout is Layout.VLLM:
        return engine_id(mirror, sha)
    tree = mirror.tree_id(sha, kernels.path)
    assert tree is not None, "the kernels were just found there"  # noqa: S101
    return tree
