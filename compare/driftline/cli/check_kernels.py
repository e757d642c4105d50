"""`driftline check-kernels`: the kernel check of one commit, on this machine, without a server."""

from typing import Annotated

import typer

from driftline.cli import local_worker


def check_kernels(
    repo: Annotated[str, typer.Option(help="URL of a git repository, or a folder on this machine.")],
    commit: Annotated[str, typer.Option(help="SHA, branch or tag.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Compare a commit's kernels with the float64 oracle, case by case.

    Exit codes: 0 passed, 1 failed, 2 could not be judged.

    Examples:

      driftline check-kernels --repo . --commit HEAD

      driftline check-kernels --repo https://github.com/me/kernels --commit main --json
    """
    local_worker.become("check", repo=repo, commit=commit, as_json=as_json)
