"""Time, broker, reconciler and worker together: a run goes as far as a test lets it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
from driftline.contracts.words import AttemptState, JobKind, JobState, RunState
from driftline_service.database.engine import Sessions
from driftline_service.database.event_queries import events_of
from driftline_service.database.tables import Attempt, Job, Run
from driftline_service.dispatch.producer import BrokerDown
from driftline_service.runs.reconciler import Reconciler
from driftline_service.runs.submission import submit
from sqlalchemy import select

from scripted.answers import forced, sample, scores
from scripted.requests import lane, new_run
from scripted.worker import ScriptedWorker


class Clock:
    """The present, moved on by tests."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def pass_seconds(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


@dataclass
class Broker:
    """A producer that keeps messages here, loses them on demand, or is down."""

    messages: list[tuple[str, UUID, str]] = field(default_factory=list)
    down: bool = False
    priorities: list[int] = field(default_factory=list)
    """of all messages that were ever sent, in their order"""

    def send(self, queue: str, job_id: UUID, claim_token: str, *, priority: int) -> None:
        if self.down:
            raise BrokerDown("connection refused")
        self.messages.append((queue, job_id, claim_token))
        self.priorities.append(priority)

    def take(self) -> list[tuple[str, UUID, str]]:
        taken, self.messages = self.messages, []
        return taken


@dataclass
class World:
    """Everything but the worker's children: submit, let the reconciler look, work, look again."""

    sessions: Sessions
    broker: Broker
    clock: Clock
    reconciler: Reconciler
    worker: ScriptedWorker
    client: httpx.Client

    lane = staticmethod(lane)
    new_run = staticmethod(new_run)
    sample = staticmethod(sample)
    forced = staticmethod(forced)
    scores = staticmethod(scores)

    def submit(self, **changes: Any) -> UUID:
        with self.sessions.begin() as session:
            return submit(session, new_run(**changes))

    def messages(self) -> list[tuple[str, UUID, str]]:
        """What a look of the reconciler sends."""
        assert self.reconciler.step()
        return self.broker.take()

    def run_until_done(self, run_id: UUID, worker: ScriptedWorker | None = None) -> Run:
        """Work off every message, phase by phase. A look that judges sends none, but may plan a fresh pair for the next."""
        while messages := self.messages() or self.messages():
            for message in messages:
                (worker or self.worker).work(message)
        return self.run(run_id)

    def reach(self, run_id: UUID, state: RunState) -> list[tuple[str, UUID, str]]:
        """Work until the run is in this state; the messages of its phase."""
        while True:
            messages = self.messages()
            if self.run(run_id).state is state:
                return messages
            for message in messages:
                self.worker.work(message)

    def evaluating(self, **changes: Any) -> list[tuple[str, UUID, str]]:
        """The messages of a new run whose builds and checks are over: as if they were done, without doing them."""
        run_id, now = self.submit(**changes), self.clock()
        facts = {"worker_name": "w0", "worker": {}, "environment_id": "env-1", "lease_until": now, "finished_at": now}
        with self.sessions.begin() as session:
            for job in session.scalars(select(Job).where(Job.run_id == run_id, Job.kind != JobKind.EVALUATE)):
                attempt = Attempt(
                    job_id=job.id, number=1, state=AttemptState.SUCCEEDED, token_hash=uuid4().hex, **facts
                )  # fmt: skip
                session.add(attempt)
                session.flush()
                job.adopted_attempt_id, job.state, job.finished_at = attempt.id, JobState.SUCCEEDED, now
        return self.messages()

    def run(self, run_id: UUID) -> Run:
        with self.sessions() as session:
            return session.get_one(Run, run_id)

    def job(self, job_id: UUID) -> Job:
        with self.sessions() as session:
            return session.get_one(Job, job_id)

    def events(self, run_id: UUID) -> list[str]:
        with self.sessions() as session:
            return [event.kind for event in events_of(session, run_id)]
