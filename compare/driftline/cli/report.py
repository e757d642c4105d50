"""`driftline report`: the report of a finished run."""

from enum import StrEnum
from typing import Annotated

import typer

from driftline.cli import server
from driftline.cli.chosen import RUNS, chosen
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, Run, ServerUrl, Token


class Format(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"


def report(
    run: Run,
    format: Annotated[Format, typer.Option("--format", help="markdown or json.")] = Format.MARKDOWN,  # noqa: A002
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Print a run's report.

    Examples:

      driftline report latest

      driftline report 4f1c --format json > report.json
    """
    found = server.find(data_dir, server_url, token)
    typer.echo(found.get_text(f"/api/v1/runs/{chosen(found, RUNS, run)}/report", format=format.value))
