"""What the command line of the embedded stack asks for. Parsing only."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import driftline_service

PROJECT_ROOT = Path(driftline_service.__file__).resolve().parents[2]
"""The checkout this package runs from: it holds driftline.toml, the canary's files and both environments."""

DEFAULT_PORT = 8642


AT_ONCE = min(2, os.cpu_count() or 1)
"""Two children with half of the cores each get through more than one after the other with all: a canary's operations are
too small to share, and threads that wait for each other spin."""


@dataclass(frozen=True, slots=True)
class Options:
    """One embedded stack. All paths are absolute."""

    data_dir: Path
    port: int
    config: Path
    assets_root: Path
    eval_python: Path
    worker: bool
    concurrency: int


def parse(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m driftline_service.embedded", description=__doc__)
    parser.add_argument(
        "--data-dir", type=Path, default=Path(".driftline"), help="database, mirrors, logs; default ./.driftline"
    )
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help=f"on 127.0.0.1; default {DEFAULT_PORT}, 0 is any free one"
    )
    parser.add_argument("--config", type=Path, default=PROJECT_ROOT / "driftline.toml", help="the lanes")
    parser.add_argument(
        "--assets-root", type=Path, default=PROJECT_ROOT, help="folder below which the lanes' files are"
    )
    parser.add_argument(
        "--eval-python",
        type=Path,
        default=PROJECT_ROOT / ".venv-eval" / "bin" / "python",
        help="Python that has torch and lm-eval",
    )
    parser.add_argument("--no-worker", action="store_true", help="start no worker: runs wait until one comes")
    parser.add_argument(
        "--concurrency", type=int, default=AT_ONCE, help=f"jobs the worker does at once; default {AT_ONCE}"
    )
    found = parser.parse_args(arguments)
    return Options(
        data_dir=found.data_dir.resolve(), port=found.port, config=found.config.resolve(),
        assets_root=found.assets_root.resolve(),
        eval_python=found.eval_python.absolute(),  # not resolved: a virtual environment's python is a link out of it
        worker=not found.no_worker, concurrency=found.concurrency,
    )  # fmt: skip
