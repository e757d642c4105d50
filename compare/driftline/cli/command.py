"""`driftline command`: the lm_eval command line of a lane."""

from pathlib import Path
from typing import Annotated

import typer

from driftline.cli import project
from driftline.cli.failure import CommandError


def command(
    lane: Annotated[str, typer.Argument(metavar="LANE", help="A lane of driftline.toml, e.g. 'canary vllm V1'.")],
    config: Annotated[Path, typer.Option("--config", help="Another driftline.toml.")] = project.CONFIG,
) -> None:
    """Print the exact lm_eval command line that gives the number a lane measures; needs no server.

    The line goes to standard output, what it cannot express to standard error.

    Example:

      driftline command "granite-4.0-tiny V1"
    """
    from driftline.harness_command import harness_command
    from driftline.lane_file import ConfigurationError, read_lanes

    try:
        lanes = read_lanes(config)
    except ConfigurationError as error:
        raise CommandError(str(error)) from error
    found = lanes.named(lane)
    if found is None:
        raise CommandError(f"there is no lane {lane!r} in {config}; there are {', '.join(map(repr, lanes.names))}")
    root = config.resolve().parent
    python = project.EVAL_PYTHON if found.runs_in is None else root / found.runs_in.python
    made = harness_command(found, root=root, programs=python.parent)
    typer.echo(made.line)
    for note in made.notes:
        typer.echo(f"note: {note}", err=True)
