"""`driftline impact`: what a change can reach, on this machine, without a server."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli import project
from driftline.cli.failure import CommandError


def impact(
    repo: Annotated[str, typer.Option(help="URL of a git repository, or a folder on this machine.")],
    base: Annotated[str, typer.Option(help="SHA, branch or tag.")],
    head: Annotated[str, typer.Option(help="SHA, branch or tag.")] = "HEAD",
    config: Annotated[Path, typer.Option("--config", help="Another driftline.toml.")] = project.CONFIG,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say which models, operators and lanes a change reaches, and whether the repository's CI tests their accuracy.

    Follows the imports of the tree at head. Nothing is checked out, and nothing of it is run.

    Example:

      driftline impact --repo ~/vllm --base main --head my-branch
    """
    from driftline.git import GitError, Mirror
    from driftline.impact.asked import bounded_impact
    from driftline.lane_file import ConfigurationError, read_lanes
    from driftline.report.impact_text import impact_lines

    try:
        lanes = read_lanes(config).all
        with tempfile.TemporaryDirectory(prefix="driftline-impact-") as cache:
            mirror = Mirror.open(Path(cache), repo)
            if mirror.url.local:
                mirror.borrow()
            else:
                mirror.fetch()
            old, new = mirror.resolve(base), mirror.resolve(head)
            kernels = mirror.find_kernels(new)
            if kernels is None:
                raise CommandError(f"{head} ({new[:12]}) holds neither a package mamba2_varlen nor vLLM's mamba ops")
            found = bounded_impact(mirror, old, new, kernels, lanes)
    except (GitError, ConfigurationError) as error:
        raise CommandError(str(error)) from error
    if isinstance(found, str):
        raise CommandError(f"{repo}: {found}")
    typer.echo(found.model_dump_json(indent=2) if as_json else "\n\n".join(impact_lines(found)))
