"""The options by which every client command finds its server."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_DATA_DIR = Path(".driftline")

DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir", envvar="DRIFTLINE_DATA_DIR", help="Data folder of `driftline serve`; its server is used."
    ),
]
ServerUrl = Annotated[str | None, typer.Option("--server", envvar="DRIFTLINE_SERVER", help="URL of another server.")]
Token = Annotated[
    str | None,
    typer.Option(
        "--token", envvar="DRIFTLINE_TOKEN", help="A token of it; needed to write, and to read a private one."
    ),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or `latest`.")]
