"""Seeds one after the other on one stack: ask for runs, let faults meet them, wait for the end, look at what must hold."""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from faults.injector import Injector
from faults.invariants import Books
from faults.schedule import Schedule, make_schedule
from faults.stack import Stack
from git_repository import branch, git
from repository import ExampleRepository, make_repository

LANE = "canary V1"
QUESTIONS = 12
OVER_SECONDS = 150.0
"""A seed takes some 6 s on two idle cores; this is for a machine that others use as well."""

QUIET_SECONDS = 30.0
LOOK_SECONDS = 0.1
KERNELS = "kernels/src/mamba2_varlen/__init__.py"
FINISHED = frozenset({"done", "failed", "cancelled", "superseded"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """`happened` counts the schedule's steps that were reached; `problems` are sentences."""

    schedule: Schedule
    happened: int
    seconds: float
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = "ok" if not self.problems else "FAILED"
        reached = f"{self.happened} of {len(self.schedule.steps)} faults"
        return f"seed {self.schedule.seed}: {told}, {reached}, {self.seconds:.1f} s"


class Season:
    """One stack. What earlier seeds measured stays in its database, and must not change any more."""

    def __init__(self, stack: Stack, repository: ExampleRepository) -> None:
        self._stack, self._repository = stack, repository
        self._books = Books(stack.database.url)
        self._prints: dict[int, tuple[list[UUID], str]] = {}

    def play(self, seed: int) -> Outcome:
        begun, schedule = time.monotonic(), make_schedule(seed)
        base, head = self._commits(seed)
        self._stack.worker_lives_with(skew=schedule.skew, small_disk=schedule.small_disk)
        self._wait(self._ready, OVER_SECONDS)
        run_ids = [self._submit(f"{base}-{number}", base, head) for number in range(schedule.runs)]
        injector = Injector(self._stack, schedule, run_ids)
        self._stack.doorway.begin(injector.meet)
        try:
            over = self._wait(lambda: self._are_over(run_ids), OVER_SECONDS)
        finally:
            injector.close()
        problems = [] if over else [f"not over after {OVER_SECONDS:.0f} s: {self._whereabouts(run_ids)}"]
        problems += injector.errors
        if over:
            problems += self._checked(schedule, run_ids)
        return Outcome(schedule, len(injector.happened), time.monotonic() - begun, problems)

    def _checked(self, schedule: Schedule, run_ids: list[UUID]) -> list[str]:
        self._wait(self._ready, OVER_SECONDS)
        quiet = self._wait(self._is_quiet, QUIET_SECONDS)
        problems = [] if quiet else [f"not quiet: {self._unrest()}"]
        before = self._books.fingerprint(run_ids)
        self._stack.doorway.send_late_ones()
        if self._books.fingerprint(run_ids) != before:
            problems.append("a report that came after the end changed the run")
        for number, run_id in enumerate(run_ids):
            cancelled = schedule.cancels and number == 0
            found = self._books.problems(run_id, questions=QUESTIONS, may_be_cancelled=cancelled)
            problems += [f"run {number + 1}: {problem}" for problem in found]
        for seed, (earlier, print_) in self._prints.items():
            if self._books.fingerprint(earlier) != print_:
                problems.append(f"the finished runs of seed {seed} changed")
        self._prints[schedule.seed] = (run_ids, before)
        return problems

    def _commits(self, seed: int) -> tuple[str, str]:
        """Two branches of this seed's own, so that nothing of theirs was measured before."""
        folder = self._repository.path
        names = (f"base-{seed}", f"head-{seed}")
        for name in names:
            git(folder, "checkout", "--quiet", "main")
            branch(folder, name, {KERNELS: (folder / KERNELS).read_text(encoding="utf-8") + f"# {name}\n"})
        return names

    def _submit(self, key: str, base: str, head: str) -> UUID:
        body = {
            "repo": str(self._repository.path), "base": base, "head": head, "lanes": [LANE], "questions": QUESTIONS,
            "name": head,
        }  # fmt: skip
        return UUID(self._stack.server.post("/api/v1/runs", body, headers={"Idempotency-Key": key})["run_id"])

    def _wait(self, look: Callable[[], bool], seconds: float) -> bool:
        """Whether it came to be, while the stack is kept running."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._stack.tend()
            if look():
                return True
            time.sleep(LOOK_SECONDS)
        return False

    def _ready(self) -> bool:
        return self._stack.ready() and all(child.running for child in self._stack.children.values())

    def _are_over(self, run_ids: list[UUID]) -> bool:
        states = self._books.states(run_ids)
        return states is not None and FINISHED.issuperset(states)

    def _unrest(self) -> dict[str, Any]:
        worker = self._stack.folder / "worker"
        attempts = worker / "attempts"
        return {
            "messages unsent": self._books.unsent(), "processes of jobs": len(self._stack.of_jobs()),
            "scratch": [] if self._stack.small_disk else sorted(path.name for path in self._stack.scratch.glob("*")),
            "attempts noted": [path.name for path in attempts.iterdir()] if attempts.is_dir() else [],
        }  # fmt: skip

    def _is_quiet(self) -> bool:
        return not any(self._unrest().values())

    def _whereabouts(self, run_ids: list[UUID]) -> str:
        query = """select jobs.kind, arm, jobs.state, (select array_agg(attempts.state || ' ' || coalesce(failure_reason, '')
          order by number) from attempts where job_id = jobs.id) as attempts from jobs where run_id = any(%(ids)s)
          and state in ('queued', 'running')"""
        return "; ".join(str(tuple(row.values())) for row in self._books.rows(query, ids=run_ids))


@contextmanager
def season() -> Iterator[Season]:
    """A fresh stack in a folder that goes with the block; its logs stay if the block fails."""
    folder = Path(tempfile.mkdtemp(prefix="driftline-faults-"))
    stack = Stack(folder, secrets.token_hex(16))
    with ExitStack() as closing:
        closing.callback(stack.stop)
        repository = make_repository(folder / "repository")
        stack.start()
        yield Season(stack, repository)
