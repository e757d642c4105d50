"""`driftline changes`: a lane's change points on main, and what people decide of them."""

import json
from typing import Annotated, Any
from urllib.parse import quote

import typer

from driftline.cli import server
from driftline.cli.failure import CommandError
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token
from driftline.contracts.change_state import ChangeState


def changes(
    lane: Annotated[str, typer.Argument(metavar="LANE", help="A lane; `driftline lanes` lists them.")],
    commit: Annotated[
        str | None, typer.Option(help="Decide on the point at this commit: its SHA, or 4 and more of it.")
    ] = None,
    state: Annotated[ChangeState | None, typer.Option(help="confirmed, acknowledged, ignored or fixed.")] = None,
    why: Annotated[str | None, typer.Option(help="Kept with the decision.")] = None,
    repo: Annotated[str | None, typer.Option(help="Only this repository's, exactly as submitted.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Show since which of main's commits a lane's score is another; with --commit, say what becomes of such a point.

    Examples:

      driftline changes "canary V1"

      driftline changes "canary V1" --commit 4f1c2d --state acknowledged --why "the new sampler, agreed in #123"
    """
    given = [each is not None for each in (commit, state, why)]
    if any(given) and not all(given):
        raise CommandError("a decision needs all three: --commit, --state and --why")
    found = server.find(data_dir, server_url, token)
    path = f"/api/v1/lanes/{quote(lane, safe='')}/change-points"
    of_one: dict[str, Any] = {"repository": repo} if repo is not None else {}
    if commit is not None and state is not None:
        shown = found.post(path, {"commit": commit.lower(), "state": state.value, "why": why} | of_one)
    else:
        shown = found.get(path, **of_one)
    typer.echo(json.dumps(shown, indent=2) if as_json else "\n".join(_lines(shown)))


def _lines(shown: Any) -> list[str]:
    lines = []
    for point in shown["points"]:
        lines.append(
            f"{point['commit'][:10]}  {point['filter']}  {point['before']:.4f} → {point['after']:.4f}  "
            f"p {point['p_value']:.3g}  {point['state']}"
        )
        lines += [f"    {each['state']} by {each['who']}: {each['why']}" for each in point["decisions"]]
    watched = ", ".join(f"{each['commits']} commits of {each['repository']}" for each in shown["watched"])
    return lines or [f"no change point over {watched or 'no commit'}"]
