"""The run that measures an earlier run's lanes again: a pure function of its rows."""

from collections.abc import Sequence

from driftline.contracts.lane import Lane
from driftline.contracts.words import Arm

from driftline_service.database.tables import Run, RunLane
from driftline_service.runs.submission import Commit, NewRun


def repeat_of(run: Run, lanes: Sequence[RunLane], *, times: int, arm: Arm | None, created_by: str) -> NewRun:
    """`times` pairs of both arms, or of one commit with itself, on the lanes as they were frozen. Nothing is reused."""
    base, head = _commit(run, arm or Arm.BASE), _commit(run, arm or Arm.HEAD)
    return NewRun(
        name=f"{run.name} again"[:200], repository_url=run.repository.url, main_branch=run.repository.main_branch,
        layout=run.layout, base=base, head=head, lanes=tuple(Lane.model_validate(row.lane) for row in lanes),
        margin=run.margin, created_by=created_by, repeats=times - 1, measure_noise=True,
    )  # fmt: skip


def _commit(run: Run, arm: Arm) -> Commit:
    fields = ("ref", "sha", "subject", "kernel_path", "kernel_tree")
    return Commit(**{name: getattr(run, f"{arm.value}_{name}") for name in fields})
