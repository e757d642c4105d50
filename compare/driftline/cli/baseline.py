"""`driftline baseline`: which imports may stand for a base arm. An admin decides, with a reason that is kept."""

import json
from typing import Annotated, Any

import typer

from driftline.cli import server
from driftline.cli.chosen import IMPORTS, chosen
from driftline.cli.imports import By, ImportName
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token

HELP = """Promote an import to a baseline, or take that back.

An import was measured by somebody else. Promoting it says: where it fits, no base arm needs to be measured.

Examples:

  driftline baseline promote 4f1c --reason "same container, checked with rescore"

  driftline baseline demote 4f1c --reason "other driver"

  driftline baseline list
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Reason = Annotated[str, typer.Option(help="Kept in the event log.")]


@app.command("promote")
def promote(
    name: ImportName,
    reason: Reason,
    environment: Annotated[
        str | None, typer.Option(help="Worker environment for which it stands; default: of the worker seen last.")
    ] = None,
    by: By = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Let an import stand for base arms of its commit, on its lane, in one worker environment.

    Example:

      driftline baseline promote 4f1c --reason "same container, checked with rescore"
    """
    more = {} if environment is None else {"environment_id": environment}
    view = _decide("promote", name, reason=reason, by=by, found=server.find(data_dir, server_url, token), more=more)
    typer.echo(f"import {view['import_id']}: baseline of {view['commit']} on {view['lane']}, "
               f"environment {view['baseline']['environment_id']}")  # fmt: skip


@app.command("demote")
def demote(
    name: ImportName,
    reason: Reason,
    by: By = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Let an import stand for nothing any more. Verdicts that were given stay as they are.

    Example:

      driftline baseline demote 4f1c --reason "other driver"
    """
    view = _decide("demote", name, reason=reason, by=by, found=server.find(data_dir, server_url, token))
    typer.echo(f"import {view['import_id']}: no baseline any more")


@app.command("list")
def list_baselines(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """List the promoted imports.

    Example:

      driftline baseline list --json
    """
    found = server.find(data_dir, server_url, token)
    promoted = [view for view in found.pages("/api/v1/imports", "imports") if view["baseline"]]
    if as_json:
        typer.echo(json.dumps(promoted, indent=2))
        return
    for view in promoted:
        baseline = view["baseline"]
        typer.echo(f"{view['import_id'][:8]}  {view['commit'][:10]}  {view['lane']}  {baseline['environment_id']}  "
                   f"by {baseline['promoted_by']}")  # fmt: skip
    if not promoted:
        typer.echo("no import is a baseline; `driftline baseline promote` makes it one")


def _decide(
    what: str, name: str, *, reason: str, by: str | None, found: server.Server, more: dict[str, str] | None = None
) -> Any:
    from driftline.cli.imports import person

    body = {"decided_by": person(by), "reason": reason} | (more or {})
    return found.post(f"/api/v1/imports/{chosen(found, IMPORTS, name)}/{what}", body)
