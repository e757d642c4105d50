"""`make test`: every suite with the interpreter it belongs to, on real services, with a line of time for each.

Suites that share the two cores run side by side only where they do not measure or start whole stacks.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

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
    workers: int = 2
    marks: str = "not gpu and not history and not vllm"


SUITES = (
    Suite("compare", CONTROL, ("compare/tests",)),
    Suite("kernels", EVAL, ("kernels/tests",)),
    Suite("canary", EVAL, ("canary/tests",), workers=0),
    Suite("evaluate child", EVAL, ("worker/tests/evaluate",)),
    Suite("service", CONTROL, ("service/tests",)),
    Suite("worker", CONTROL, ("worker/tests",)),
    Suite("across packages", CONTROL, ("tests",), workers=0),
)

ON_REQUEST = (Suite("vllm", CONTROL, ("tests/vllm",), workers=0, marks="vllm"),)
"""Needs an environment that `make test` does not make: `make test-vllm`."""


def run_suite(suite: Suite, environment: dict[str, str]) -> int:
    """pytest's exit code for one suite."""
    command = [str(suite.python), "-P", "-m", "pytest", "-q", "--durations=5", "-m", suite.marks, *suite.folders]
    if suite.workers:
        command += ["-n", str(suite.workers), "--dist", "loadfile"]
    if suite.name == "worker":
        command.append("--ignore=worker/tests/evaluate")
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> None:
    named = sys.argv[1:]
    chosen = [suite for suite in (*SUITES, *ON_REQUEST) if suite.name in named] if named else list(SUITES)
    if not chosen:
        raise SystemExit(f"no such suite; known: {', '.join(suite.name for suite in (*SUITES, *ON_REQUEST))}")
    outcomes: list[tuple[str, int, float]] = []
    with services() as urls:
        environment = {**os.environ, **urls, "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}
        for suite in chosen:
            sys.stdout.write(f"\n== {suite.name}\n")
            sys.stdout.flush()
            started = time.monotonic()
            code = run_suite(suite, environment)
            outcomes.append((suite.name, code, time.monotonic() - started))
    sys.stdout.write("\n")
    for name, code, seconds in outcomes:
        sys.stdout.write(f"{'passed' if code == 0 else 'FAILED':7} {seconds:6.0f} s  {name}\n")
    if any(code for _, code, _ in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
