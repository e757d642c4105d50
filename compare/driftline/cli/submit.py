"""`driftline submit`: asks for a run, and with --watch stays until it is judged."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from driftline.cli import server
from driftline.cli.failure import CommandError
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token


def submit(
    repo: Annotated[str, typer.Option(help="URL of a git repository, or a folder on this machine.")],
    head: Annotated[str, typer.Option(help="The commit to judge: SHA, branch or tag.")],
    base: Annotated[str | None, typer.Option(help="Against which; default: where head left the main branch.")] = None,
    lane: Annotated[
        list[str] | None, typer.Option(help="A lane, may be repeated; default: the configured ones.")
    ] = None,
    questions: Annotated[int | None, typer.Option(min=1, help="Ask fewer questions than the lane does.")] = None,
    margin: Annotated[
        float | None, typer.Option(help="Largest drop that counts as none, a fraction; default 0.025.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What to call the run.")] = None,
    measure_noise: Annotated[
        bool, typer.Option("--measure-noise", help="base = head, both evaluated: an A/A run.")
    ] = False,
    early_stopping: Annotated[
        bool | None,
        typer.Option(
            "--early-stopping/--no-early-stopping",
            help="Stop lanes as soon as their pairs decide; default: as configured.",
        ),
    ] = None,
    confirm: Annotated[
        bool | None,
        typer.Option("--confirm/--no-confirm", help="Measure a first hit once more; default: as configured."),
    ] = None,
    repeat: Annotated[
        int, typer.Option(min=0, help="Evaluate every lane so many times more, for its noise floor.")
    ] = 0,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show progress, then the report; the exit code is the verdict.")
    ] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> int:
    """Ask whether a commit moved the accuracy.

    Prints the run's page. Exit codes with --watch:

      0  no drift seen: equivalent, improved, or underpowered

      2  red: regressed, kernel check failed, or head broken

      3  nothing judged: not comparable, or the run failed, was cancelled or superseded

      1  bad input, or the server stayed away

      130  Ctrl-C; the run goes on

    Examples:

      driftline submit --repo . --head HEAD --watch

      driftline submit --repo https://github.com/me/kernels --head my-branch --lane "canary V1" --questions 100

      driftline submit --repo . --head main --measure-noise --repeat 3
    """
    found = server.find(data_dir, server_url, token)
    if base is not None and measure_noise:
        raise CommandError("--measure-noise compares head with itself; leave --base out")
    body: dict[str, Any] = {"repo": absolute(repo), "head": head, "measure_noise": measure_noise}
    body |= {"base": base} if base is not None else {}
    body |= {"lanes": lane} if lane else {}
    body |= {"questions": questions} if questions is not None else {}
    body |= {"early_stopping": early_stopping} if early_stopping is not None else {}
    body |= {"confirm": confirm} if confirm is not None else {}
    body |= {"repeats": repeat} if repeat else {}
    body |= {"margin": margin} if margin is not None else {}
    body |= {"name": name} if name is not None else {}
    run = found.post("/api/v1/runs", body)
    typer.echo(f"run {run['run_id']}\n{run['url']}")
    if not watch:
        return 0
    from driftline.cli.watch import watch_run

    return watch_run(found, str(run["run_id"]))


def absolute(repo: str) -> str:
    """A folder is named from here, but read by a server that is elsewhere."""
    if urlsplit(repo).scheme or ("@" in repo and ":" in repo):
        return repo
    path = Path(repo).expanduser()
    if not path.exists():
        raise CommandError(f"--repo {repo}: no such folder, and not a URL")
    return str(path.resolve())
