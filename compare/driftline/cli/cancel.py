"""`driftline cancel`."""

from typing import Annotated

import typer

from driftline.cli import server
from driftline.cli.chosen import RUNS, chosen
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, Run, ServerUrl, Token


def cancel(
    run: Run,
    reason: Annotated[str, typer.Option(help="Kept with the run.")] = "cancelled from the command line",
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Stop a run. What it measured so far stays stored.

    Example:

      driftline cancel latest --reason "wrong branch"
    """
    found = server.find(data_dir, server_url, token)
    answer = found.post(f"/api/v1/runs/{chosen(found, RUNS, run)}/cancel", {"reason": reason})
    typer.echo(f"run {answer['run_id']}: {answer['state']}")
