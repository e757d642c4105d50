"""Which lanes a change can reach at all. A lane that cannot see a change would be green for the wrong reason."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from driftline.contracts.lane import Lane
from driftline.contracts.words import Engine, Layout

OWN_FOLDERS: Mapping[str, frozenset[str]] = {"torch": frozenset({"triton_backend"})}
"""Backend -> folders of the kernels it can never load, in layout mamba2_varlen: `torch` runs without Triton.
The triton backend may call the torch one, and everything may call what lies beside them."""


def unreachable_lanes(
    lanes: Sequence[Lane], changed: Sequence[PurePosixPath], *, layout: Layout, kernel_path: str
) -> dict[str, str]:
    """Lane name -> why no changed file can reach its backend."""
    if layout is not Layout.MAMBA2_VARLEN:
        return {}
    on_vllm = {
        lane.name: f"vLLM serves Mamba2 with operators of its own and loads nothing of {kernel_path}"
        for lane in lanes
        if lane.engine is Engine.VLLM
    }
    inside = [path.relative_to(kernel_path) for path in changed if path.is_relative_to(kernel_path)]
    folders = {path.parts[0] for path in inside}
    return on_vllm | {
        lane.name: f"{lane.backend} loads nothing of {', '.join(sorted(folders))}"
        for lane in lanes
        if folders and folders <= OWN_FOLDERS.get(lane.backend, frozenset())
    }
