"""A repository in vLLM's own layout: the Python tree of the installed release, tagged as that release, and three changes.

`front-broken` cannot be imported by the process that asks, though the engine's own could do without it. `state-lost` makes
the CPU's chunked scan start every chunk from a zero state, as vLLM's pull request #22034 found it for a batch of one: a whole
prompt is right, a chunked one is not.
"""

import shutil
from pathlib import Path

from git_repository import branch, commit, git, start

FRONT = "vllm/entrypoints/llm.py"
SCAN = "vllm/model_executor/layers/mamba/ops/cpu/mamba_ssm.py"
KEPT = "    if initial_states is not None:\n        all_states.copy_(initial_states.float())\n"
LOST = "    if initial_states is not None:\n        all_states.zero_()\n"


def make_repository(path: Path, package: Path, release: str) -> Path:
    """Branches main, front-broken, state-lost and compiled; main is tagged v`release`."""
    shutil.copytree(package, path / "vllm", ignore=shutil.ignore_patterns("__pycache__", "*.so", "_version.py"))
    (path / "csrc").mkdir()
    (path / "csrc" / "cpu_ops.cpp").write_text("// as released\n")
    commit(start(path), f"vLLM {release}")
    git(path, "tag", f"v{release}")
    source = (path / SCAN).read_text()
    assert KEPT in source, "this release keeps the entering state elsewhere; the planted change must follow it"
    broken = "raise ImportError('the front is broken on purpose')\n" + (path / FRONT).read_text()
    branch(path, "front-broken", {FRONT: broken})
    branch(path, "state-lost", {SCAN: source.replace(KEPT, LOST)})
    branch(path, "compiled", {"csrc/cpu_ops.cpp": "// changed\n", SCAN: source + "\n# beside it\n"})
    git(path, "checkout", "--quiet", "main")
    return path
