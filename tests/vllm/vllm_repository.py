"""A repository in vLLM's own layout: the Python tree of the installed release, tagged as that release, and two changes.

`comment` changes a line that no number depends on. `state-lost` makes the CPU's chunked scan start every chunk from a zero
state, as vLLM's pull request #22034 found it for a batch of one: a whole prompt is right, a chunked one is not.
"""

import shutil
import subprocess
from pathlib import Path

SCAN = Path("vllm/model_executor/layers/mamba/ops/cpu/mamba_ssm.py")
KEPT = "    if initial_states is not None:\n        all_states.copy_(initial_states.float())\n"
LOST = "    if initial_states is not None:\n        all_states.zero_()\n"
IDENTITY = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": "/dev/null"}  # fmt: skip


def make_repository(path: Path, package: Path, release: str) -> Path:
    """Branches main, comment, state-lost and compiled; main is tagged v`release`."""
    shutil.copytree(package, path / "vllm", ignore=shutil.ignore_patterns("__pycache__", "*.so", "_version.py"))
    (path / "csrc").mkdir()
    (path / "csrc" / "cpu_ops.cpp").write_text("// as released\n")
    git(path, "init", "--quiet", "--initial-branch=main")
    commit(path, f"vLLM {release}")
    git(path, "tag", f"v{release}")
    source = (path / SCAN).read_text()
    assert KEPT in source, "this release keeps the entering state elsewhere; the planted change must follow it"
    for branch, file, text in (
        ("comment", SCAN, source.replace("import torch\n", "import torch  # of the scan\n", 1)),
        ("state-lost", SCAN, source.replace(KEPT, LOST)),
        ("compiled", Path("csrc/cpu_ops.cpp"), "// changed\n"),
    ):
        git(path, "checkout", "--quiet", "-b", branch, "main")
        (path / file).write_text(text)
        if branch == "compiled":
            (path / SCAN).write_text(source + "\n# beside it\n")
        commit(path, branch)
    git(path, "checkout", "--quiet", "main")
    return path


def commit(path: Path, message: str) -> None:
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "--message", message)


def git(path: Path, *arguments: str) -> None:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(path)} | IDENTITY
    subprocess.run(["git", *arguments], cwd=path, env=environment, check=True)
