"""One question for the impact analysis, and the process that answers it within limits."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from driftline.contracts.base import Contract, Sha
from driftline.contracts.impact import ImpactView
from driftline.contracts.lane import Lane
from driftline.contracts.words import Layout
from driftline.git import Kernels, Mirror

LONGEST_SECONDS = 120.0
"""A busy machine takes ten times as long as an idle one."""


class Asked(Contract):
    """Which commits of which mirror; both are in it already."""

    cache: str
    url: str
    base: Sha
    head: Sha
    layout: Layout
    kernel_path: str
    lanes: list[Lane]

    @property
    def kernels(self) -> Kernels:
        return Kernels(self.layout, self.kernel_path)


def bounded_impact(mirror: Mirror, base: str, head: str, kernels: Kernels, lanes: Sequence[Lane]) -> ImpactView | str:
    """The impact of head against base, or why it is not known. Never raises for what the commits hold."""
    asked = Asked(
        cache=str(mirror.git.folder.parent), url=mirror.url.address, base=base, head=head, layout=kernels.layout,
        kernel_path=kernels.path, lanes=list(lanes),
    )  # fmt: skip
    try:
        answer = subprocess.run(
            [sys.executable, "-P", "-m", "driftline.impact"], input=asked.model_dump_json().encode(),
            capture_output=True, timeout=LONGEST_SECONDS, check=False, cwd=Path("/"),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"reading the imports took longer than {LONGEST_SECONDS:.0f} s"
    if answer.returncode != 0:
        said = answer.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"the imports could not be read: {said[-1][:300] if said else f'exit {answer.returncode}'}"
    try:
        return ImpactView.model_validate_json(answer.stdout)
    except ValidationError as error:
        return f"the imports could not be read: {error.error_count()} fields of the answer are wrong"
