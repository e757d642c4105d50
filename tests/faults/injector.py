"""Meets the reports of one seed with the faults of its schedule."""

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from signal import SIGCONT, SIGINT, SIGSTOP
from uuid import UUID

import redis
from driftline.cli.failure import CommandError
from faults.doorway import Answer, Doorway, Report
from faults.schedule import Fault, Moment, Schedule, Step
from faults.stack import Stack

QUEUE = "cpu"
PATIENCE_SECONDS = 8.0
"""How long a fault waits for what it is to meet: a child, a message."""

LATE_SECONDS = 1.5
FROZEN_SECONDS = 12.0
"""More than a lease takes in the service's time lapse."""

FULL_SECONDS = 1.0


class Injector:
    """`happened` lists the steps that were reached. A run that is over sooner leaves the rest out."""

    def __init__(self, stack: Stack, schedule: Schedule, run_ids: list[UUID]) -> None:
        self._stack, self._run_ids = stack, run_ids
        self._steps = deque(schedule.steps)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.happened: list[Step] = []
        self.errors: list[str] = []

    def close(self) -> None:
        """Returns once nothing more of it can happen."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def meet(self, number: int, report: Report, doorway: Doorway) -> Answer | None:
        """As doorway.Meet."""
        with self._lock:
            due = bool(self._steps) and self._steps[0].at <= number and not self._over.is_set()
            step = self._steps.popleft() if due else None
            if step is not None:
                self.happened.append(step)
        if step is None:
            return doorway.forward(report)
        if (travel := self._travel(step.fault, report, doorway)) is not None:
            return travel()
        return self._act(step, report, doorway)

    def _act(self, step: Step, report: Report, doorway: Doorway) -> Answer | None:
        action = self._action(step.fault)
        if step.moment is Moment.BEFORE:
            action()
            return doorway.forward(report)
        if step.moment is Moment.DURING:
            self._aside(lambda: (time.sleep(step.delay), action()))
            return doorway.forward(report)
        answer = doorway.forward(report)
        action()
        return answer

    def _travel(self, fault: Fault, report: Report, doorway: Doorway) -> Callable[[], Answer | None] | None:
        """What happens to the report itself, if that is the fault."""
        match fault:
            case Fault.REPORT_LOST:
                return lambda: None
            case Fault.ANSWER_LOST:
                return lambda: (doorway.forward(report), None)[1]
            case Fault.REPORT_TWICE:
                return lambda: self._twice(report, doorway)
            case Fault.REPORT_LATE:
                return lambda: (doorway.again_later(report), doorway.forward(report))[1]
        return None

    @staticmethod
    def _twice(report: Report, doorway: Doorway) -> Answer | None:
        """A claim's second copy is refused, and the worker has the first one's answer."""
        first = doorway.forward(report)
        second = doorway.forward(report)
        return first if report.is_claim else second

    def _action(self, fault: Fault) -> Callable[[], object]:
        stack = self._stack
        actions: dict[Fault, Callable[[], object]] = {
            Fault.WORKER_KILLED: lambda: stack.kill("worker"),
            Fault.SERVICE_KILLED: lambda: stack.kill("service"),
            Fault.RECONCILER_KILLED: lambda: stack.kill("reconciler"),
            Fault.DATABASE_KILLED: lambda: stack.kill("postgres"),
            Fault.DATABASE_RESTARTED: lambda: stack.kill("postgres", SIGINT),
            Fault.BROKER_EMPTIED: lambda: stack.kill("redis"),
            Fault.CHILD_KILLED: lambda: self._aside(lambda: self._until(stack.kill_a_child)),
            Fault.MESSAGE_LOST: lambda: self._aside(lambda: self._rival(0)),
            Fault.MESSAGE_TWICE: lambda: self._aside(lambda: self._rival(2)),
            Fault.MESSAGE_LATE: lambda: self._aside(lambda: self._rival(1)),
            Fault.WORKER_FROZEN: lambda: self._aside(self._freeze),
            Fault.DISK_FULL: lambda: self._aside(self._fill),
            Fault.RUN_CANCELLED: lambda: self._aside(lambda: self._until(self._cancel)),
        }
        return actions[fault]

    def _aside(self, act: Callable[[], object]) -> None:
        def run() -> None:
            try:
                act()
            except Exception as error:
                self.errors.append(f"the injector broke: {type(error).__name__}: {error}")

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    def _until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not done() and time.monotonic() < deadline and not self._over.is_set():
            time.sleep(0.02)

    def _rival(self, copies: int) -> None:
        """Another consumer takes the next message, and puts it back so often, later if only once."""
        with suppress(redis.RedisError), self._stack.redis() as broker:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < deadline and not self._over.is_set():
                taken = broker.brpop([QUEUE], timeout=1)
                if taken is not None:
                    if copies == 1:
                        self._over.wait(LATE_SECONDS)
                    for _ in range(copies):
                        broker.lpush(QUEUE, taken[1])
                    return

    def _freeze(self) -> None:
        self._stack.kill("worker", SIGSTOP)
        self._over.wait(FROZEN_SECONDS)
        self._stack.kill("worker", SIGCONT)

    def _fill(self) -> None:
        self._stack.fill_disk(full=True)
        self._over.wait(FULL_SECONDS)
        self._stack.fill_disk(full=False)

    def _cancel(self) -> bool:
        """Asked again while the service is away; a run that was faster is not to be cancelled any more."""
        try:
            self._stack.server.post(f"/api/v1/runs/{self._run_ids[0]}/cancel", {"reason": "a fault"})
        except CommandError as error:
            return "already" in str(error)
        return True
