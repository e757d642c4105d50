"""`driftline history`: what was measured on a lane and what people reported of it."""

import json
from typing import Annotated
from urllib.parse import quote

import typer

from driftline.cli import server
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token


def history(
    lane: Annotated[str, typer.Argument(metavar="LANE", help="A lane; `driftline lanes` lists them.")],
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The newest so many points.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Show a lane's scores over time, oldest first. Reported points were not measured by the server.

    Example:

      driftline history "canary V1"
    """
    found = server.find(data_dir, server_url, token).get(f"/api/v1/lanes/{quote(lane, safe='')}/history", limit=limit)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("when", "commit", "source", "n", "scores", "remarks", box=None)
    for point in found["points"]:
        scores = ", ".join(_score(score) for score in point["scores"])
        by = f"by {point['reported_by']}" if point["reported_by"] else ""
        standing = "baseline" if point["baseline"] else "" if point["has_samples"] else "figures only"
        table.add_row(
            point["at"][:16].replace("T", " "), point["commit"][:10], point["source"], str(point["questions"]), scores,
            ", ".join(part for part in (by, standing, point["note"]) if part),
        )  # fmt: skip
    Console().print(table if found["points"] else f"nothing was measured or reported on {lane} yet")


def _score(score: dict[str, object]) -> str:
    stderr = "" if score["stderr"] is None else f" ± {score['stderr']:.4f}"
    return f"{score['filter']} {score['value']:.4f}{stderr}"
