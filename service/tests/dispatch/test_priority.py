"""Pull requests before what people submit, and both before baselines of main: in the outbox and in a real Redis."""

import os
from uuid import UUID, uuid4

import pytest
from celery import Celery
from driftline.contracts.words import JobKind, RunState
from driftline_service.database import github_queries
from driftline_service.database.github_tables import GithubPull
from driftline_service.database.job_queries import is_measured_by_an_earlier_run, jobs_of
from driftline_service.database.tables import Job
from driftline_service.dispatch.celery_producer import CeleryProducer
from driftline_service.runs.priority import MAIN_KEY, Priority
from driftline_service.runs.submission import Commit

REDIS = os.environ.get("DRIFTLINE_TEST_REDIS_URL", "redis://127.0.0.1:6379/0")


def of_a_pull_request(world, **changes) -> UUID:
    run_id = world.submit(**changes)
    with world.sessions.begin() as session:
        pull = GithubPull(repository="o/r", number=1, installation_id=1, clone_url="u", base_ref="main", head_sha="d" * 40,
                          fork=False, open=True)  # fmt: skip
        session.add(pull)
        session.flush()
        github_queries.link(session, pull.id, run_id)
    return run_id


def arms(number: int) -> dict[str, Commit]:
    """Commits that no other run shares."""
    shas = {"base": f"{number:040x}", "head": f"{number + 1000:040x}"}
    return {arm: Commit(ref=arm, sha=sha, subject="s", kernel_path="k", kernel_tree=sha) for arm, sha in shas.items()}


def test_the_outbox_sends_the_urgent_first(world) -> None:
    runs = {
        world.submit(idempotency_key=f"{MAIN_KEY}{'a' * 40}", **arms(1)): Priority.MAIN,
        world.submit(idempotency_key="github:mainly", **arms(2)): Priority.SUBMISSION,
        of_a_pull_request(world, **arms(3)): Priority.PULL_REQUEST,
    }
    sent = [job_id for _, job_id, _ in world.messages()]
    with world.sessions() as session:
        of_jobs = [runs[session.get_one(Job, job_id).run_id] for job_id in sent]
    assert of_jobs == sorted(of_jobs) == world.broker.priorities
    assert len(of_jobs) == 6


@pytest.fixture
def queue() -> str:
    return f"test-priority-{uuid4().hex}"


def test_redis_gives_the_urgent_first_and_equals_in_their_order(queue: str) -> None:
    producer = CeleryProducer(REDIS)
    jobs = {
        uuid4(): priority for priority in (Priority.MAIN, Priority.SUBMISSION, Priority.PULL_REQUEST) for _ in range(2)
    }
    for job_id, priority in jobs.items():
        producer.send(queue, job_id, "token", priority=priority)
    producer.close()
    taken = []
    with Celery("reader", broker=REDIS).connection() as connection, connection.SimpleQueue(queue) as box:
        for _ in jobs:
            message = box.get(timeout=5)
            taken.append(UUID(message.payload[0][0]))
            message.ack()
        box.queue.delete()
    by_urgency = sorted(jobs, key=lambda job_id: jobs[job_id])  # stable
    assert taken == by_urgency


def test_nobody_waits_behind_a_baseline_of_main_that_is_not_begun(world) -> None:
    world.submit(idempotency_key=f"{MAIN_KEY}{'a' * 40}")
    run_id = world.submit()
    with world.sessions() as session:
        build = next(job for job in jobs_of(session, run_id) if job.kind is JobKind.BUILD and job.arm == "base")
        assert not is_measured_by_an_earlier_run(session, build)
    assert world.run(run_id).state is RunState.QUEUED
    of_main = world.messages()[-1]
    world.worker.claim(of_main)
    with world.sessions() as session:
        job = session.get_one(Job, of_main[1])
        same = next(other for other in jobs_of(session, run_id) if (other.kind, other.arm) == (job.kind, job.arm))
        assert is_measured_by_an_earlier_run(session, same)
