"""`driftline serve`: becomes the supervisor of the embedded stack. The stack itself is the service's."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.options import DEFAULT_DATA_DIR, DataDir


def serve(
    data_dir: DataDir = DEFAULT_DATA_DIR,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes any free one.")] = 8642,
    eval_python: Annotated[
        Path | None, typer.Option(help="Python with torch and lm-eval; default .venv-eval's.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="The lanes; default the project's driftline.toml.")] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=64, help="Jobs the worker does at once; default 2, or 1 on one core.")
    ] = None,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Start a worker here.")] = True,
) -> None:
    """Start PostgreSQL, service and worker on this machine, until Ctrl-C.

    Everything is kept in one data folder; a server that was killed goes on where it was when it is started again.

    Examples:

      driftline serve

      driftline serve --data-dir /var/lib/driftline --port 9000
    """
    arguments = [
        sys.executable,
        "-P",
        "-m",
        "driftline_service.embedded",
        "--data-dir",
        str(data_dir),
        "--port",
        str(port),
    ]
    arguments += ["--eval-python", str(eval_python)] if eval_python else []
    arguments += ["--config", str(config)] if config else []
    arguments += ["--concurrency", str(concurrency)] if concurrency else []
    arguments += [] if worker else ["--no-worker"]
    os.execv(arguments[0], arguments)  # noqa: S606 - an argument list, no shell; signals then reach the supervisor itself
