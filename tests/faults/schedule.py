"""What goes wrong in one seed, and when: a pure function of the seed. The same seed gives the same schedule, for ever.

Points in time are counted in reports of the workers (claims, batches and finishes, not heartbeats), so that a schedule hits
the same steps of a run on a fast machine and on a slow one.
"""

from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Fault(StrEnum):
    WORKER_KILLED = "the worker is killed"
    CHILD_KILLED = "a child is killed"
    SERVICE_KILLED = "the service is killed"
    RECONCILER_KILLED = "the reconciler is killed"
    DATABASE_KILLED = "PostgreSQL is killed"
    DATABASE_RESTARTED = "PostgreSQL is restarted"
    BROKER_EMPTIED = "Redis is killed and comes back empty"
    MESSAGE_LOST = "the next message is lost"
    MESSAGE_TWICE = "the next message comes twice"
    MESSAGE_LATE = "the next message comes late"
    REPORT_LOST = "the report does not arrive"
    ANSWER_LOST = "the report arrives, its answer does not"
    REPORT_TWICE = "the report arrives twice"
    REPORT_LATE = "the report arrives again, after later ones"
    WORKER_FROZEN = "the worker stands still until its leases are over"
    DISK_FULL = "the worker's disk is full for a while"
    RUN_CANCELLED = "the run is cancelled"


class Moment(StrEnum):
    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


COSTLY = frozenset({
    Fault.WORKER_KILLED, Fault.CHILD_KILLED, Fault.SERVICE_KILLED, Fault.DATABASE_KILLED, Fault.DATABASE_RESTARTED,
    Fault.ANSWER_LOST, Fault.WORKER_FROZEN,
})  # fmt: skip
"""Each may cost a job one of its three attempts; so a schedule has at most two, and every job must succeed."""

MOST_COSTLY = 2
RARE = {Fault.WORKER_FROZEN: 0.3, Fault.DISK_FULL: 0.4, Fault.RUN_CANCELLED: 0.4}
"""Weights of what takes seconds or ends the run early; all others weigh 1."""

REPORTS = 20
"""A run without faults makes some 22 reports."""

LONGEST_DELAY = 0.08
"""Seconds into a report: some are stored by then and some are not."""

SKEWS = (0.0, 0.0, 7 * 3600.0, -26 * 3600.0)
"""Seconds by which a worker's clock is ahead: more than Redis's visibility timeout, and more than a day behind."""


@dataclass(frozen=True, slots=True)
class Step:
    """At the `at`th report something goes wrong: `moment` tells on which side of the report, `delay` how long into it."""

    at: int
    fault: Fault
    moment: Moment
    delay: float

    def __str__(self) -> str:
        into = f", {self.delay * 1000:.0f} ms into it" if self.moment is Moment.DURING else ""
        return f"{self.moment} report {self.at}{into}: {self.fault}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """`runs` are asked for side by side; the second is of the same commits, so that it waits for the first one's work."""

    seed: int
    runs: int
    skew: float
    steps: tuple[Step, ...]

    @property
    def cancels(self) -> bool:
        return any(step.fault is Fault.RUN_CANCELLED for step in self.steps)

    @property
    def small_disk(self) -> bool:
        return any(step.fault is Fault.DISK_FULL for step in self.steps)

    def __str__(self) -> str:
        clock = f", the worker's clock {self.skew / 3600:+g} h" if self.skew else ""
        head = f"seed {self.seed}: {self.runs} {'run' if self.runs == 1 else 'runs'}{clock}"
        return "\n".join([head, *(f"  {step}" for step in self.steps)])


def make_schedule(seed: int) -> Schedule:
    """The seed's schedule: two to six faults, the costly ones at most MOST_COSTLY."""
    random = Random(seed)  # noqa: S311 - a schedule, no secret
    count = random.randint(2, 6)
    faults: list[Fault] = []
    while len(faults) < count:
        fault = random.choices(list(Fault), [RARE.get(fault, 1.0) for fault in Fault])[0]
        full = fault in COSTLY and sum(one in COSTLY for one in faults) == MOST_COSTLY
        if not full and not (fault in RARE and fault in faults):
            faults.append(fault)
    places = sorted(random.sample(range(1, REPORTS + 1), count))
    steps = tuple(
        Step(at, fault, random.choice(list(Moment)), random.uniform(0.0, LONGEST_DELAY))
        for at, fault in zip(places, faults, strict=True)
    )
    return Schedule(seed, random.choice((1, 1, 1, 2)), random.choice(SKEWS), steps)
