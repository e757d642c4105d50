"""`driftline runs`: the latest runs, one a line."""

import json
from typing import Annotated

import typer

from driftline.cli import server
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token


def runs(
    state: Annotated[str | None, typer.Option(help="Only those in this state, e.g. done or evaluating.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """List runs, newest first.

    Examples:

      driftline runs

      driftline runs --state done --json
    """
    found = server.find(data_dir, server_url, token)
    listed = found.get("/api/v1/runs", limit=limit, **({"state": state} if state else {}))
    if as_json:
        typer.echo(json.dumps(listed["runs"], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("run", "name", "head", "base", "state", "verdict", "kernel check", "submitted", box=None)
    for run in listed["runs"]:
        table.add_row(
            run["run_id"][:8], run["name"], run["head"][:10], run["base"][:10], run["state"], run["verdict"] or "",
            run["kernel_check"] or "", run["created_at"][:16].replace("T", " "),
        )  # fmt: skip
    Console().print(table if listed["runs"] else "no runs yet; `driftline submit` asks for one")
