"""`driftline token`: API tokens of a service, for its admins."""

from typing import Annotated

import typer

from driftline.cli import server
from driftline.cli.failure import CommandError
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token

app = typer.Typer(
    help="Make, list and revoke the tokens by which people and programs write to a service.", no_args_is_help=True,
    rich_markup_mode=None,
)  # fmt: skip

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose it is; runs and the audit log call its bearer so.")]


@app.command("create")
def create(
    name: Name,
    scope: Annotated[str, typer.Option(help="read, submit or admin; each holds the ones before it.")] = "submit",
    days: Annotated[int, typer.Option(min=0, max=3650, help="Valid for so long; 0: until it is revoked.")] = 90,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Make a token. It is printed this once and kept nowhere but as a hash.

    Examples:

      driftline token create "ci of kernels"

      driftline token create "a reader" --scope read --days 7
    """
    found = server.find(data_dir, server_url, token)
    made = found.post("/api/v1/tokens", {"name": name, "scope": scope, "days": days or None})
    until = f"until {made['expires_at'][:10]}" if made["expires_at"] else "until it is revoked"
    typer.echo(made["token"])
    typer.echo(f"{made['name']} may {made['scope']} {until}; this is the only time it is shown", err=True)


@app.command("list")
def list_(
    every: Annotated[bool, typer.Option("--all", help="Expired and revoked ones too.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Name, scope, who made it, until when, last use. Never the token itself."""
    found = server.find(data_dir, server_url, token)
    for entry in found.get("/api/v1/tokens")["tokens"]:
        if entry["valid"] or every:
            typer.echo("  ".join(_columns(entry)))


@app.command("revoke")
def revoke(name: Name, data_dir: DataDir = DEFAULT_DATA_DIR, server_url: ServerUrl = None, token: Token = None) -> None:
    """End a token at once. Runs that its bearer submitted go on."""
    found = server.find(data_dir, server_url, token)
    entries = found.get("/api/v1/tokens")["tokens"]
    fitting = [entry["id"] for entry in entries if entry["name"] == name and entry["revoked_at"] is None]
    if not fitting:
        raise CommandError(f"there is no token named {name!r} to revoke; `driftline token list` shows them")
    found.delete(f"/api/v1/tokens/{fitting[0]}")
    typer.echo(f"{name}: revoked")


def _columns(entry: dict[str, str | None]) -> list[str]:
    state = "revoked" if entry["revoked_at"] else "valid" if entry["valid"] else "expired"
    until, used = entry["expires_at"], entry["last_used_at"]
    return [
        f"{entry['name']:24}", f"{entry['scope']:6}", f"{state:7}", f"by {entry['created_by']}",
        f"until {until[:10]}" if until else "without end", f"last used {used[:16]}" if used else "never used",
    ]  # fmt: skip
