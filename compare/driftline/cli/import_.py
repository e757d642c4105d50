"""`driftline import`: puts evaluations that somebody made with lm-eval into the server's history."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from driftline.cli import server
from driftline.cli.failure import CommandError
from driftline.cli.imports import By, person
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token

TAR = "application/x-tar"


def import_(
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="FOLDER…", help="Folders that lm-eval wrote with --log_samples.")
    ] = None,
    commit: Annotated[str | None, typer.Option(help="The commit that was measured, full SHA.")] = None,
    lane: Annotated[str | None, typer.Option(help="The lane that it was measured as; `driftline lanes`.")] = None,
    repo: Annotated[str | None, typer.Option(help="Its repository, as runs name it; a baseline needs it.")] = None,
    note: Annotated[str, typer.Option(help="Kept with the import.")] = "",
    by: By = None,
    results_only: Annotated[
        Path | None, typer.Option("--results-only", metavar="FILE", help="A file of figures without samples.")
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="The results printed in vLLM pull request 21467, shipped with this.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> None:
    """Report evaluations that were made elsewhere. They are shown as reported, never as measured.

    The same files again give the same import. An import is a baseline only if an admin promotes it.

    Examples:

      driftline import results/ --commit 3f0a… --lane "canary V1" --repo https://github.com/me/kernels --note "our H100"

      driftline import --results-only figures.json

      driftline import --reference
    """
    ways = [bool(places), results_only is not None, reference]
    if sum(ways) != 1:
        raise CommandError("name lm-eval's folders, or --results-only FILE, or --reference: one of the three")
    if places and (commit is None or lane is None):
        raise CommandError("a folder needs --commit and --lane: lm-eval's files do not say what they measured")
    if not places and (commit or lane or repo):
        raise CommandError("figures name their commits, lanes and repositories themselves; leave the options out")
    found = server.find(data_dir, server_url, token)
    if places:
        about = {"commit": str(commit), "lane": str(lane), "reported_by": person(by), "note": note}
        views = list(_folders(found, places, about | ({} if repo is None else {"repo": repo})))
    else:
        views = _figures(found, results_only, reported_by=person(by), note=note)
    if as_json:
        typer.echo(json.dumps(views, indent=2))
        return
    for view in views:
        typer.echo(
            f"import {view['import_id']}: {view['commit'][:10]} on {view['lane']}, {_scores(view)}\n{view['url']}"
        )
        for warning in view["warnings"]:
            typer.echo(f"  warning: {warning}", err=True)


def _folders(found: server.Server, places: list[Path], about: dict[str, str]) -> Iterator[Any]:
    from driftline.cli.evaluation_archive import archive_of, evaluation_files

    packed = [evaluation_files(place) for place in places]  # a wrong folder is told before anything is sent
    for files in packed:
        with archive_of(files) as archive:
            yield found.upload("/api/v1/imports", archive, TAR, **about)


def _figures(found: server.Server, path: Path | None, *, reported_by: str, note: str) -> list[Any]:
    from driftline.cli.figures_file import read_figures, reference_figures

    figures = reference_figures() if path is None else read_figures(path)
    body = {"reported_by": reported_by, "note": note, "figures": figures.model_dump(mode="json")}
    views: list[Any] = found.post("/api/v1/imports/figures", body)["imports"]
    return views


def _scores(view: dict[str, Any]) -> str:
    return ", ".join(f"{score['filter']} {score['value']:.4f}" for score in view["scores"])
