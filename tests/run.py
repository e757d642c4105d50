"""`make test`: every suite with the interpreter it belongs to, on real services, with a line of time for each.

Many tests wait and many compute, so several suites run at once; what a suite printed is shown whole when it ends.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from services import services  # noqa: E402

CONTROL = ROOT / ".venv" / "bin" / "python"
EVAL = ROOT / ".venv-eval" / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Suite:
    """Test folders that share one interpreter. `workers` is pytest-xdist's process count."""

    name: str
    python: Path
    folders: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    workers: int = 2
    marks: str = "not gpu and not history and not vllm"
    yields: bool = False
    """Whether it leaves the cores to the other suites whenever they want them: for one that computes and watches no clock."""


END_TO_END = ("tests/test_end_to_end.py", "tests/test_faults.py")
"""One process has them, since all use one embedded stack, which takes longest to do its work."""

SUITES = (
    Suite("end to end", CONTROL, END_TO_END, workers=0),
    Suite("service", CONTROL, ("service/tests",)),
    Suite("worker", CONTROL, ("worker/tests",), ignored=("worker/tests/evaluate",)),
    Suite("kernels", EVAL, ("kernels/tests",), yields=True),
    Suite("compare", CONTROL, ("compare/tests",)),
    Suite("across packages", CONTROL, ("tests",), ignored=END_TO_END, workers=0),
    Suite("evaluate child", EVAL, ("worker/tests/evaluate",), yields=True),
    Suite("canary", EVAL, ("canary/tests",), workers=0, yields=True),
)
"""The longest first, so that none is left alone at the end. No two use one database: those of Redis are numbered in the tests,
those of PostgreSQL are made by them."""

ON_REQUEST = (Suite("vllm", CONTROL, ("tests/vllm",), workers=0, marks="vllm"),)
"""Needs an environment that `make test` does not make: `make test-vllm`."""

AT_ONCE = 3
"""Suites. Two leave a core idle while their tests wait; four make each other slower and the whole no faster."""

TELL_SECONDS = 60.0
"""Between two lines that say what runs."""

NICENESS = "10"
"""Of a suite that yields: it gets a tenth of what the others get, and all that they leave."""


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    code: int
    seconds: float

    def __str__(self) -> str:
        return f"{'passed' if self.code == 0 else 'FAILED':7} {self.seconds:6.0f} s  {self.name}"


@dataclass(frozen=True, slots=True)
class Runner:
    """alone: the only suite is shown as it runs. `running` are the suites that do, and since when.

    Each suite has a root of its own in `folder` for its temporary files: pytest closes its root to other users whenever it
    starts, which would shut out the PostgreSQL that another suite runs as one of them.
    """

    environment: dict[str, str]
    folder: Path
    alone: bool
    telling: Lock = field(default_factory=Lock)
    running: dict[str, float] = field(default_factory=dict)

    def run(self, suite: Suite) -> Outcome:
        started = self.running[suite.name] = time.monotonic()
        said = None if self.alone else subprocess.PIPE
        files = Path(tempfile.mkdtemp(dir=self.folder))
        environment = self.environment | {"PYTEST_DEBUG_TEMPROOT": str(files)}
        done = subprocess.run(
            command_of(suite), cwd=ROOT, env=environment, check=False, stdout=said, stderr=subprocess.STDOUT
        )
        del self.running[suite.name]
        self.tell(f"\n== {suite.name}\n{(done.stdout or b'').decode(errors='replace')}")
        return Outcome(suite.name, done.returncode, time.monotonic() - started)

    def tell(self, text: str) -> None:
        with self.telling:
            sys.stdout.write(text)
            sys.stdout.flush()

    def all(self, suites: Sequence[Suite]) -> list[Outcome]:
        """Outcomes in the suites' order; tells every so often what still runs, for suites are shown when they end."""
        with ThreadPoolExecutor(AT_ONCE) as pool, ExitStack() as leaving:
            waiting = [pool.submit(self.run, suite) for suite in suites]
            leaving.callback(pool.shutdown, cancel_futures=True)  # at Ctrl-C, which pytest hears as well, none is begun
            while wait(waiting, timeout=None if self.alone else TELL_SECONDS).not_done:
                now = time.monotonic()
                self.tell(
                    "".join(f"-- {name}: {now - since:.0f} s so far\n" for name, since in [*self.running.items()])
                )
            return [one.result() for one in waiting]


def command_of(suite: Suite) -> list[str]:
    command = ["nice", "-n", NICENESS] if suite.yields else []
    command += [str(suite.python), "-P", "-m", "pytest", "-q", "--durations=5", "-m", suite.marks, *suite.folders]
    if suite.workers:
        command += ["-n", str(suite.workers), "--dist", "loadfile"]
    return command + [f"--ignore={path}" for path in suite.ignored]


def main() -> None:
    known, named = (*SUITES, *ON_REQUEST), sys.argv[1:]
    chosen = [suite for suite in known if suite.name in named] if named else SUITES
    if not chosen:
        raise SystemExit(f"no such suite; known: {', '.join(suite.name for suite in known)}")
    with services() as urls:
        environment = {**os.environ, **urls, "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}
        folder = Path(tempfile.mkdtemp(prefix="driftline-"))
        outcomes = Runner(environment, folder, alone=len(chosen) == 1).all(chosen)
    sys.stdout.write("\n" + "".join(f"{outcome}\n" for outcome in outcomes))
    if any(outcome.code for outcome in outcomes):
        raise SystemExit(f"files of the tests that failed: {folder}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
