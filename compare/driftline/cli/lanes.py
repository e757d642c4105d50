"""`driftline lanes`: what can be measured."""

import json
from typing import Annotated

import typer

from driftline.cli import server
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token


def lanes(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """List the server's lanes; those marked default are taken when a submit names none.

    Example:

      driftline lanes
    """
    found = server.find(data_dir, server_url, token).get("/api/v1/lanes")["lanes"]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("lane", "default", "model", "engine", "mode", "backend", "task", "questions", "GPU", box=None)
    for entry in found:
        lane = entry["lane"]
        table.add_row(
            lane["name"], "yes" if entry["default"] else "", lane["model"]["name"], lane["engine"], lane["mode"],
            lane["backend"], lane["task"]["name"], str(lane["questions"]), lane["gpu_type"] or "none",
        )  # fmt: skip
    Console().print(table)
