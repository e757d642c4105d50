"""The plugin as something that vLLM finds: a folder with an entry point, and the variables that turn it on. Standard library.

Nothing is installed: the folder goes on the import path of one engine and is gone with it.
"""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAME: Final = "mamba2_varlen"
"""What VLLM_PLUGINS says."""

KERNELS: Final = "DRIFTLINE_PLUGIN_KERNELS"
BACKEND: Final = "DRIFTLINE_PLUGIN_BACKEND"
REPORT: Final = "DRIFTLINE_PLUGIN_REPORT"

CHILDREN: Final = Path(__file__).resolve().parents[1]
METADATA: Final = "Metadata-Version: 2.1\nName: driftline-mamba2-plugin\nVersion: 1\n"
ENTRY_POINTS: Final = f"[vllm.general_plugins]\n{NAME} = driftline_worker.children.vllm_plugin.registration:register\n"


@dataclass(frozen=True)
class Call:
    """One operator, as the process that called it first reports it."""

    operator: str
    served: str
    in_place_of: str


def make_distribution(folder: Path, children: Path = CHILDREN) -> Path:
    """Write the plugin's distribution into `folder`; the folder, which belongs on the import path.

    The package is a link to the folder of the children, so that the engine's processes import what this one runs.
    """
    package = folder / "driftline_worker"
    package.mkdir(parents=True)
    (package / "children").symlink_to(children, target_is_directory=True)
    metadata = folder / "driftline_mamba2_plugin-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(METADATA, encoding="utf-8")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    return folder


def variables(folder: Path, *, kernels: Path, backend: str, python_path: str | None) -> dict[str, str]:
    """What an engine's processes need in their environment; `python_path` is what they import from already."""
    return {
        "VLLM_PLUGINS": NAME,
        KERNELS: str(kernels),
        BACKEND: backend,
        REPORT: str(folder / "calls.jsonl"),
        "PYTHONPATH": f"{python_path}{os.pathsep}{folder}" if python_path else str(folder),
    }


def turn_on(folder: Path, *, kernels: Path, backend: str) -> Path:
    """Have engines that this process starts load the plugin, with the kernels below `kernels`; where they report to."""
    sys.path.append(str(folder))
    os.environ |= variables(folder, kernels=kernels, backend=backend, python_path=os.environ.get("PYTHONPATH"))
    return Path(os.environ[REPORT])


def reported_calls(report: Path) -> tuple[Call, ...]:
    """What the engine's processes called so far, each operator of each serving module once, by name."""
    if not report.is_file():
        return ()
    lines = report.read_text(encoding="utf-8").splitlines()
    return tuple(sorted({Call(**json.loads(line)) for line in lines}, key=lambda call: (call.operator, call.served)))
