"""A real PostgreSQL with a migrated database of this session's own. A missing server fails, never skips."""

import base64
import json
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
import uvicorn
from driftline.contracts.lane import Lane, ModelSource, TaskSource
from driftline.contracts.words import AttemptState, JobKind, JobState, Layout, Mode, RunState
from driftline.contracts.words import Engine as LaneEngine
from driftline.contracts.worker_api import Claim, WorkerFacts
from driftline_service import worker_api
from driftline_service.api import problems
from driftline_service.database.engine import Sessions, make_engine, make_sessions
from driftline_service.database.event_queries import events_of
from driftline_service.database.migrate import migrate
from driftline_service.database.tables import Attempt, Base, Job, Run
from driftline_service.dispatch.producer import BrokerDown
from driftline_service.runs.reconciler import Reconciler
from driftline_service.runs.submission import Commit, NewRun, submit
from fastapi import FastAPI
from sqlalchemy import Engine, select, text
from sqlalchemy.engine import URL, make_url

SERVER = os.environ.get("DRIFTLINE_TEST_DATABASE_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")


def run_on_server(statement: str) -> None:
    dsn = make_url(SERVER).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(dsn, autocommit=True, connect_timeout=5) as connection:
        connection.execute(statement)


def url_of(database: str) -> str:
    url: URL = make_url(SERVER).set(database=database)
    return url.render_as_string(hide_password=False)


def migrated_database() -> Iterator[str]:
    """The URL of a new migrated database, dropped afterwards."""
    name = f"driftline_test_{uuid4().hex[:12]}"
    run_on_server(f"create database {name}")
    run_on_server(f"alter database {name} set synchronous_commit = off")  # no power cut is tested: half the time
    migrate(url_of(name))
    yield url_of(name)
    run_on_server(f"drop database {name} with (force)")


@pytest.fixture
def fresh_url() -> Iterator[str]:
    """A database of this test's own, to migrate at will. It costs two seconds: most tests take `core_engine`."""
    yield from migrated_database()


@pytest.fixture
def fresh_engine(fresh_url: str) -> Iterator[Engine]:
    engine = make_engine(fresh_url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def core_url() -> Iterator[str]:
    yield from migrated_database()


@pytest.fixture(scope="session")
def shared_engine(core_url: str) -> Iterator[Engine]:
    engine = make_engine(core_url)
    yield engine
    engine.dispose()


@pytest.fixture
def core_engine(shared_engine: Engine) -> Engine:
    """An engine on a database without rows. Only a superuser's role `replica` gets past the append-only log."""
    tables = ", ".join(table.name for table in Base.metadata.sorted_tables)
    with shared_engine.begin() as connection:
        connection.execute(text("set local session_replication_role = replica"))
        connection.execute(text(f"truncate {tables}"))
    return shared_engine


@pytest.fixture
def core_sessions(core_engine: Engine) -> Sessions:
    return make_sessions(core_engine)


def lane(name: str = "canary V1", questions: int = 3) -> Lane:
    """A lane on the CPU; its task has ten questions."""
    digest = "0" * 64
    task = TaskSource(
        name="gsm8k_canary", yaml="t.yaml", train="a.jsonl", test="b.jsonl", test_sha256=digest, train_sha256=digest,
        total_questions=10,
    )  # fmt: skip
    return Lane(
        name=name, model=ModelSource(name="canary", path="canary/model"), engine=LaneEngine.HF, mode=Mode(name[-2:]),
        backend="torch", task=task, questions=questions, engine_arguments={"batch_size": 4},
    )  # fmt: skip


def new_run(**changes: Any) -> NewRun:
    """A request for one lane with two different kernels; `changes` replace fields."""
    commits = {arm: arm[0] * 40 for arm in ("base", "head")}
    arms = {
        arm: Commit(ref=arm, sha=sha.replace("h", "d"), subject=f"the {arm}", kernel_path="kernels", kernel_tree=sha)
        for arm, sha in commits.items()
    }
    usual: dict[str, Any] = {
        "name": "a run", "repository_url": "https://example.org/kernels.git", "main_branch": "main",
        "layout": Layout.MAMBA2_VARLEN, "base": arms["base"], "head": arms["head"], "lanes": (lane(),),
        "margin": 0.025, "created_by": "a person",
    }  # fmt: skip
    return NewRun(**(usual | changes))


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

    def send(self, queue: str, job_id: UUID, claim_token: str) -> None:
        if self.down:
            raise BrokerDown("connection refused")
        self.messages.append((queue, job_id, claim_token))

    def take(self) -> list[tuple[str, UUID, str]]:
        taken, self.messages = self.messages, []
        return taken


class ScriptedWorker:
    """A worker that speaks the real HTTP; what its children say is written down here."""

    def __init__(self, client: httpx.Client, name: str = "w1", environment_id: str = "env-1") -> None:
        self.client = client
        self.facts = WorkerFacts(name=name, host="h", environment_id=environment_id, sandbox="plain")
        self.must_match = {"model": "canary@1"}

    def post(self, path: str, token: str, body: Any = None) -> httpx.Response:
        content = None if body is None else json.dumps(body)
        return self.client.post(f"/worker/v1{path}", content=content, headers={"Authorization": f"Bearer {token}"})

    def try_claim(self, job_id: UUID, claim_token: str) -> httpx.Response:
        return self.post(f"/jobs/{job_id}/claim", claim_token, {"worker": self.facts.model_dump()})

    def claim(self, message: tuple[str, UUID, str]) -> Claim:
        response = self.try_claim(message[1], message[2])
        assert response.status_code == 200, response.text
        return Claim.model_validate(response.json())

    def report(self, claim: Claim, lines: list[dict[str, Any]], sequence: int = 0) -> httpx.Response:
        path = f"/attempts/{claim.attempt_id}/lines"
        return self.post(path, claim.attempt_token, {"sequence": sequence, "lines": lines})

    def finish(self, claim: Claim, batches: int = 1, **more: Any) -> httpx.Response:
        body = {"outcome": "succeeded", "batches": batches} | more
        return self.post(f"/attempts/{claim.attempt_id}/finish", claim.attempt_token, body)

    def fail(self, claim: Claim, kind: str, reason: str = "child_died", **more: Any) -> httpx.Response:
        return self.finish(claim, 0, outcome="failed", failure_kind=kind, reason=reason, message="exit 1", **more)

    def work(self, message: tuple[str, UUID, str]) -> Claim:
        """Do a whole job."""
        return self.complete(self.claim(message))

    def complete(self, claim: Claim) -> Claim:
        """Report what a good child says, and finish."""
        assert self.report(claim, self.lines(claim.spec)).json()["action"] == "continue"
        finished = self.finish(claim)
        assert finished.json() == {"action": "continue", "reason": ""}, finished.text
        return claim

    def lines(self, spec: Any) -> list[dict[str, Any]]:
        """What a good child says."""
        environment = {"type": "environment", "must_match": self.must_match, "recorded": {"torch": "2.13"}}
        if spec.kind == "build":
            build = {"type": "kernel_build", "kernel": "scan", "config": "64", "arch": "sm_80", "compiled": True}
            return [environment, build | {"registers": 96, "spills": 0, "shared_memory": 4096}]
        if spec.kind == "check":
            summary = {"type": "check_summary", "layout": "mamba2_varlen", "era": "ours", "device": "cpu"}
            case = {"type": "case", "name": "packed", "kind": "contract", "backend": "torch", "passed": True}
            errors = {"max_abs_err": 1e-6, "max_rel_err": 1e-5, "tolerance": 1e-4}
            return [environment, summary | {"backends": ["torch"]}, case | errors]
        answers = [sample(doc_id, rank) for rank, doc_id in enumerate(spec.doc_ids)]
        return [environment, *answers, *(forced(doc_id) for doc_id in spec.doc_ids), scores(spec.doc_ids)]


def sample(doc_id: int, rank: int, response: str = "so #### 42", target: str = "#### 42") -> dict[str, Any]:
    hashes = {name: sha256(f"{name}{doc_id}".encode()).hexdigest() for name in ("doc", "prompt", "target")}
    return {
        "type": "sample", "doc_id": doc_id, "rank": rank, "question": f"question {doc_id}?", "target": target,
        "response": response, "finish_reason": "stop", "prompt_tokens": 7, "response_tokens": 4,
    } | {f"{name}_hash": digest for name, digest in hashes.items()}  # fmt: skip


def forced(doc_id: int, values: tuple[float, ...] = (-0.5, -0.25, -0.125)) -> dict[str, Any]:
    packed = base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
    counts = {"prompt_tokens": len(values) - 1, "answer_tokens": 1}
    return {"type": "teacher_forced", "doc_id": doc_id, "logprobs": packed} | counts


def scores(doc_ids: list[int]) -> dict[str, Any]:
    filters = ("strict-match", "flexible-extract")
    return {
        "type": "scores", "task_version": "3.0", "num_fewshot": 3, "task_hash": "t",
        "metrics": {f"exact_match,{name}": 1.0 for name in filters},
        "stderr": {f"exact_match,{name}": 0.0 for name in filters},
        "right": {name: sorted(doc_ids) for name in filters},
    }  # fmt: skip


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
        """Work off every message, phase by phase."""
        while messages := self.messages():
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


@pytest.fixture(scope="session")
def worker_client(shared_engine: Engine) -> Iterator[httpx.Client]:
    """The worker's HTTP on a real port."""
    app = FastAPI()
    app.state.sessions = make_sessions(shared_engine)
    app.include_router(worker_api.router)
    problems.register(app)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=20) as client:
            yield client
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def world(core_engine: Engine, core_sessions: Sessions, worker_client: httpx.Client) -> Iterator[World]:
    broker, clock = Broker(), Clock()
    reconciler = Reconciler(core_engine, broker, clock)
    yield World(core_sessions, broker, clock, reconciler, ScriptedWorker(worker_client), worker_client)
    reconciler.close()
