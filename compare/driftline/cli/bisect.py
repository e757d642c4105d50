"""`driftline bisect` and `driftline bisects`: the first commit from which a lane is worse, and the searches there are."""

import json
import time
from typing import Annotated, Any

import typer

from driftline.cli import server
from driftline.cli.chosen import Listed, chosen
from driftline.cli.failure import EXIT_NOT_COMPARABLE, CommandError, ServerAwayError
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token
from driftline.cli.submit import absolute

BISECTS = Listed("bisect", "/api/v1/bisects", "bisects", "bisect_id", "driftline bisects")

PAUSE_SECONDS = 2.0
"""A step takes minutes."""


def bisect(
    repo: Annotated[str, typer.Option(help="URL of a git repository, or a folder on this machine.")],
    good: Annotated[str, typer.Option(help="A commit at which the lane was as it should be: SHA, branch or tag.")],
    bad: Annotated[str, typer.Option(help="A later commit at which it is worse.")],
    lane: Annotated[str, typer.Option(help="The lane; `driftline lanes` lists them.")],
    questions: Annotated[int | None, typer.Option(min=1, help="Ask fewer questions than the lane does.")] = None,
    margin: Annotated[
        float | None, typer.Option(help="Largest drop that counts as none, a fraction; default 0.025.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it is over, and tell every step.")] = True,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> int:
    """Find the first commit between a good and a bad one from which a lane is worse.

    The server walks the first-parent commits between them; each step is a run against the good one. It goes on when
    this command ends. Exit codes: 0 found, 3 not narrowed down to one commit or cancelled, 1 bad input.

    Example:

      driftline bisect --repo . --good v1.2 --bad main --lane "canary V1"
    """
    found = server.find(data_dir, server_url, token)
    body: dict[str, Any] = {"repo": absolute(repo), "good": good, "bad": bad, "lane": lane}
    body |= {"questions": questions} if questions is not None else {}
    body |= {"margin": margin} if margin is not None else {}
    view = found.post("/api/v1/bisects", body)
    typer.echo(f"bisect {view['bisect_id']}\n{view['url']}\n{view['commits']} commits between")
    return _follow(found, view) if wait else 0


def bisects(
    cancel: Annotated[
        str | None, typer.Option(metavar="BISECT", help="Stop this one: its id, or its beginning.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Kept with it.")] = "cancelled from the command line",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """List searches for first bad commits, newest first, or stop one.

    Examples:

      driftline bisects

      driftline bisects --cancel 4f1c
    """
    found = server.find(data_dir, server_url, token)
    if cancel is not None:
        view = found.post(f"/api/v1/bisects/{chosen(found, BISECTS, cancel)}/cancel", {"reason": reason})
        typer.echo(f"bisect {view['bisect_id']}: {view['state']}")
        return
    listed = found.get("/api/v1/bisects")["bisects"]
    if as_json:
        typer.echo(json.dumps(listed, indent=2))
        return
    for view in listed:
        typer.echo(f"{view['bisect_id'][:8]}  {view['lane']}  {view['good'][:10]}..{view['bad'][:10]}  {_told(view)}")
    if not listed:
        typer.echo("no bisects yet; `driftline bisect` begins one")


def _follow(found: server.Server, view: Any) -> int:
    """Tell each step when it is decided; a server that is away is asked again."""
    told = 0
    while True:
        for step in view["steps"][told:]:
            if step["outcome"] is None:
                break
            told += 1
            typer.echo(f"{step['number']}. {step['sha'][:10]} {step['subject']}: {step['outcome']} ({step['why']})")
        if view["state"] != "running":
            typer.echo(_told(view))
            return 0 if view["state"] == "found" else EXIT_NOT_COMPARABLE
        time.sleep(PAUSE_SECONDS)
        try:
            view = found.get(f"/api/v1/bisects/{view['bisect_id']}")
        except ServerAwayError as error:
            raise CommandError(f"{error}; the search goes on when the server is back: `driftline bisects`") from error


def _told(view: Any) -> str:
    cost = f"{len(view['steps'])} steps, {view['questions']} questions"
    if view["first_bad"]:
        return f"first bad commit: {view['first_bad']} {view['first_bad_subject']} ({cost})"
    return f"{view['state']}: {view['message'] or str(view['remaining']) + ' commits left'} ({cost})"
