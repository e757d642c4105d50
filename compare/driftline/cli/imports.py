"""`driftline imports` and `driftline withdraw`: what people reported, and taking a wrong report back."""

import getpass
import json
from typing import Annotated

import typer

from driftline.cli import server
from driftline.cli.chosen import IMPORTS, chosen
from driftline.cli.failure import CommandError
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token

ImportName = Annotated[str, typer.Argument(metavar="IMPORT", help="An import's id, the beginning of one, or `latest`.")]
By = Annotated[str | None, typer.Option(help="Who decides or reports; default: your login name.")]


def imports(
    lane: Annotated[str | None, typer.Option(help="Only this lane's.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """List evaluations that people reported, newest first.

    Examples:

      driftline imports

      driftline imports --lane "canary V1" --json
    """
    found = server.find(data_dir, server_url, token)
    listed = found.get("/api/v1/imports", limit=limit, **({"lane": lane} if lane else {}))["imports"]
    if as_json:
        typer.echo(json.dumps(listed, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("import", "lane", "commit", "scores", "n", "by", "standing", "reported", box=None)
    for view in listed:
        standing = "withdrawn" if view["withdrawn_at"] else "baseline" if view["baseline"] else view["kind"]
        scores = ", ".join(f"{score['filter']} {score['value']:.4f}" for score in view["scores"])
        table.add_row(
            view["import_id"][:8], view["lane"], view["commit"][:10], scores, str(view["questions"]),
            view["reported_by"], standing, view["created_at"][:16].replace("T", " "),
        )  # fmt: skip
    Console().print(table if listed else "no imports yet; `driftline import` reports one")


def withdraw(
    name: ImportName,
    reason: Annotated[str, typer.Option(help="Kept in the event log.")],
    by: By = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Take a wrong import out of the history; the same files may then be imported anew.

    Example:

      driftline withdraw 4f1c --reason "wrong commit"
    """
    found = server.find(data_dir, server_url, token)
    body = {"decided_by": person(by), "reason": reason}
    view = found.post(f"/api/v1/imports/{chosen(found, IMPORTS, name)}/withdraw", body)
    typer.echo(f"import {view['import_id']}: withdrawn")


def person(given: str | None) -> str:
    """Who acts: as given, else the login name.

    Raises:
        CommandError: if there is no login name.
    """
    try:
        return given or getpass.getuser()
    except (KeyError, OSError) as error:
        raise CommandError("this process has no login name; say who you are with --by") from error
