"""The one entry for every child: a command becomes a process without network, credentials or this machine's files."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from driftline_worker import bubblewrap
from driftline_worker.eval_environment import EvalEnvironment
from driftline_worker.limits import Limits
from driftline_worker.running_child import RunningChild
from driftline_worker.scratch import Scratch

GUARD = Path(__file__).with_name("guard.py")
CHILDREN = Path(__file__).with_name("children")
DEVICES = (
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    *(f"/dev/nvidia{index}" for index in range(16)),
)

TMP, SHARED_MEMORY = Path("/tmp"), Path("/dev/shm")  # noqa: S108 - places inside the sandbox


class SandboxMissing(Exception):  # noqa: N818 - what it is
    """The sandbox that was demanded does not work here. The message says what to install or allow."""


@dataclass(frozen=True, slots=True)
class Program:
    """A child to be: a Python file, what it may read, and lane variables on top of the closed environment."""

    file: Path
    scratch: Scratch
    limits: Limits
    threads: int
    readable: tuple[Path, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    gpu: bool = False


@dataclass(frozen=True, slots=True)
class Sandbox:
    """`program` is bubblewrap; None is a plain child: limits, a closed environment, but all files and the network."""

    environment: EvalEnvironment
    program: Path | None

    @property
    def kind(self) -> Literal["bubblewrap", "plain"]:
        return "plain" if self.program is None else "bubblewrap"

    def start(self, child: Program) -> RunningChild:
        """Start a child. Its pipe is the only thing it can write to outside its scratch folder."""
        reading, writing = os.pipe()
        command = self._command(child, writing)
        try:
            process = subprocess.Popen(
                command, env=_environment(child), cwd=child.scratch.working, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=(writing,), start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return RunningChild(process, reading)

    def _command(self, child: Program, channel: int) -> list[str]:
        limits = {name: getattr(child.limits, name) for name in ("file_bytes", "cpu_seconds", "open_files")}
        guard = [sys.executable, "-I", "-S", str(GUARD), json.dumps(limits), str(os.getpid()), "--"]
        python = [str(self.environment.python), "-P", "-s", str(child.file)]
        python += ["--spec", str(child.scratch.spec_file), "--channel-fd", str(channel)]
        return [*guard, *self._walls(child), *python]

    def _walls(self, child: Program) -> list[str]:
        if self.program is None:
            return []
        scratch = child.scratch
        driver = [Path("/sys")] if child.gpu else []  # where NVIDIA's driver is asked for its devices
        return bubblewrap.arguments(
            self.program,
            readable=[*self.environment.folders, CHILDREN, child.file.parent, scratch.given, *child.readable, *driver],
            writable={TMP: scratch.temporary, SHARED_MEMORY: scratch.shared_memory, scratch.own: scratch.own},
            folder=scratch.working, devices=[Path(device) for device in DEVICES] if child.gpu else [],
        )  # fmt: skip


def choose(environment: EvalEnvironment, wanted: Literal["auto", "bubblewrap", "plain"]) -> Sandbox:
    """The sandbox that is wanted.

    Raises:
        SandboxMissing: if bubblewrap is demanded and does not work.
    """
    found = None if wanted == "plain" else bubblewrap.find()
    if wanted == "bubblewrap" and found is None:
        raise SandboxMissing(
            "bubblewrap is demanded and does not work here; install it (apt-get install bubblewrap) and allow user "
            "namespaces (sysctl kernel.unprivileged_userns_clone=1), or choose DRIFTLINE_WORKER_SANDBOX=plain"
        )
    return Sandbox(environment, found)


def _environment(child: Program) -> dict[str, str]:
    """Built from nothing: no token, no proxy and no path of the worker's environment gets in."""
    scratch = child.scratch
    threads = str(child.threads)
    return child.environment | {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(scratch.home),
        "USER": "driftline",
        "LOGNAME": "driftline",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(scratch.temporary),
        "TRITON_CACHE_DIR": str(scratch.own / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch.own / "inductor"),
        "HF_HOME": str(scratch.own / "huggingface"),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TQDM_DISABLE": "1",  # what a child printed last shall be its error
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONFAULTHANDLER": "1",
    }
