"""`driftline rescore`: applies the filters again to stored responses and names every question whose score differs."""

from pathlib import Path
from typing import Annotated

import typer

from driftline.cli import server
from driftline.cli.chosen import IMPORTS, RUNS, chosen
from driftline.cli.failure import CommandError
from driftline.cli.options import DEFAULT_DATA_DIR, DataDir, ServerUrl, Token

EXIT_DIFFERENT = 2


def rescore(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="What lm-eval wrote with --log_samples.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="A run's id, the beginning of one, or `latest`.")] = None,
    import_name: Annotated[str | None, typer.Option("--import", help="An import's id, in the same ways.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, every difference.")] = False,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    server_url: ServerUrl = None,
    token: Token = None,
) -> int:
    """Score stored responses again with driftline's own copy of gsm8k's filters. Nothing stored is changed.

    A folder needs no server. Exit codes: 0 all the same, 2 differences, 1 bad input.

    Examples:

      driftline rescore results/

      driftline rescore --run latest

      driftline rescore --import 4f1c --json
    """
    if [folder is not None, run is not None, import_name is not None].count(True) != 1:
        raise CommandError("name a folder that lm-eval wrote, or --run RUN, or --import IMPORT: one of the three")
    from driftline.contracts.imports import RescoreReport
    from driftline.report.rescored import rescored_text

    if folder is not None:
        from driftline.cli.rescored_folder import rescored_folder

        report = rescored_folder(folder)
    else:
        found = server.find(data_dir, server_url, token)
        listed, given = (RUNS, run) if run is not None else (IMPORTS, str(import_name))
        where = f"{listed.key}/{chosen(found, listed, given)}"
        report = RescoreReport.model_validate(found.get(f"/api/v1/{where}/rescore"))
    typer.echo(report.model_dump_json(indent=2) if as_json else rescored_text(report))
    return 0 if report.same else EXIT_DIFFERENT
