"""Where a tree keeps its Mamba2 kernels. Works on a list of paths; git is not known here."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from driftline.contracts.words import Layout

PACKAGE = "mamba2_varlen"
MAMBA_SSM_FOLDER = "mamba_ssm"
VLLM_FOLDER = "vllm/model_executor/layers/mamba/ops"


class Kernels(NamedTuple):
    """A layout, and the kernels' folder inside the tree."""

    layout: Layout
    path: str


def kernels_in(paths: Iterable[str]) -> Kernels | None:
    """The kernels among a tree's files. Our own layout wins over vLLM's, the shortest path over longer ones."""
    packages: list[str] = []
    vllm = False
    for path in paths:
        if path.endswith(f"{PACKAGE}/__init__.py") and PurePosixPath(path).parent.name == PACKAGE:
            packages.append(str(PurePosixPath(path).parent))
        vllm = vllm or (path.startswith(f"{VLLM_FOLDER}/") and path.endswith(".py"))
    if packages:
        return Kernels(Layout.MAMBA2_VARLEN, min(packages, key=lambda path: (path.count("/"), len(path), path)))
    return Kernels(Layout.VLLM, VLLM_FOLDER) if vllm else None


def foreign_kernels_in(paths: Iterable[str]) -> Kernels | None:
    """Kernels that can be checked and have no lanes: state-spaces/mamba's."""
    mamba_ssm = f"{MAMBA_SSM_FOLDER}/ops/triton/ssd_combined.py" in paths
    return Kernels(Layout.MAMBA_SSM, MAMBA_SSM_FOLDER) if mamba_ssm else None
