"""`driftline build-kernels`: compiles one commit's kernels ahead of time, without a server or a GPU."""

from typing import Annotated

import typer

from driftline.cli import local_worker


def build_kernels(
    repo: Annotated[str, typer.Option(help="URL of a git repository, or a folder on this machine.")],
    commit: Annotated[str, typer.Option(help="SHA, branch or tag.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Compile a commit's kernels for sm_80, sm_90 and sm_100; registers, spills and shared memory of each.

    Example:

      driftline build-kernels --repo . --commit HEAD
    """
    local_worker.become("build", repo=repo, commit=commit, as_json=as_json)
