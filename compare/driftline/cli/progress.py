"""A run's jobs on a terminal: live bars, or plain lines where there is no terminal. It shows; it asks nothing."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from driftline.contracts.report import JobView
from driftline.contracts.words import JobState, RunState

BAR_WIDTH = 30
COLORS = {
    JobState.QUEUED: "dim", JobState.RUNNING: "cyan", JobState.SUCCEEDED: "green", JobState.FAILED: "red",
    JobState.CANCELLED: "yellow",
}  # fmt: skip


class Display(Protocol):
    """Where a run's news go."""

    def say(self, line: str) -> None: ...

    def update(self, state: RunState, jobs: Sequence[JobView]) -> None: ...


class _Terminal:
    def __init__(self, live: Live) -> None:
        self._live = live

    def say(self, line: str) -> None:
        self._live.console.print(line, highlight=False, markup=False)

    def update(self, state: RunState, jobs: Sequence[JobView]) -> None:
        self._live.update(_table(state, jobs))


class _Lines:
    """Plain lines: one per event, and one whenever a tenth of a job is done."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: dict[str, int] = {}

    def say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def update(self, state: RunState, jobs: Sequence[JobView]) -> None:
        for job in jobs:
            tenth = 10 * job.done // job.total if job.done and job.total else 0
            key = f"{job.job_id} {job.phase}"
            if job.state is JobState.RUNNING and tenth > self._told.get(key, 0):
                self._told[key] = tenth
                self.say(f"  {_label(job)}: {job.phase} {job.done} of {job.total}")


@contextmanager
def display() -> Iterator[Display]:
    """On stderr, so that stdout holds the report alone."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(console=console, refresh_per_second=4) as live:
        yield _Terminal(live)


def _table(state: RunState, jobs: Sequence[JobView]) -> RenderableType:
    table = Table("job", "state", "progress", "", title=f"run is {state}", title_justify="left", box=None)
    for job in jobs:
        color = COLORS[job.state]
        total, done = float(job.total or 1), float(job.done or 0)
        bar = ProgressBar(total=total, completed=total if job.state is JobState.SUCCEEDED else done, width=BAR_WIDTH)
        counts = (
            f"{job.phase or ''} {job.done}/{job.total}"
            if job.state is JobState.RUNNING and job.total
            else job.message[:60]
        )
        table.add_row(_label(job), f"[{color}]{job.state}[/]", bar, counts)
    return table


def _label(job: JobView) -> str:
    return (
        f"{job.kind} {job.arm}"
        + (f" · {job.lane}" if job.lane else "")
        + (f" · pair {job.pair + 1}" if job.pair else "")
    )
