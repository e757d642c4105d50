"""A worker that lacks an environment, a model or data for a job does not end it while another may have them."""

from datetime import timedelta

import pytest
from driftline.contracts.words import FailureKind, JobState
from driftline_service.database.tables import Attempt, Job, Worker
from driftline_service.database.worker_queries import SEEN
from driftline_service.runs.elsewhere import ASKED_AGAIN, LACKS, WAITED_FOR
from scripted.worker import ScriptedWorker
from sqlalchemy import update


def heard_of(world, name, *, gpu_type=None, ago=timedelta()):
    facts = world.worker.facts.model_copy(update={"name": name, "gpu_type": gpu_type})
    with world.sessions.begin() as session:
        session.add(Worker(name=name, facts=facts.model_dump(mode="json"), last_seen=world.clock() - ago))


def lacking(world, reason="environment_missing"):
    """The id of an evaluation that this world's worker took and could not do."""
    message = world.evaluating()[0]
    world.worker.fail(world.worker.claim(message), "permanent", reason)
    return message[1]


def again(world, job_id):
    """The job's next message."""
    world.clock.pass_seconds(ASKED_AGAIN.total_seconds() + 1)
    return next(sent for sent in world.messages() if sent[1] == job_id)


@pytest.mark.parametrize("reason", sorted(LACKS))
def test_it_goes_to_the_worker_that_has_it(world, reason):
    heard_of(world, "w2")
    job_id = lacking(world, reason)
    assert world.job(job_id).state is JobState.QUEUED
    _, _, token = next(sent for sent in world.messages() if sent[1] == job_id)
    refused = world.worker.try_claim(job_id, token)
    assert (refused.status_code, refused.json()["reason"]) == (409, "left_to_another")
    ScriptedWorker(world.client, name="w2").work(again(world, job_id))
    assert world.job(job_id).state is JobState.SUCCEEDED


def test_where_nobody_else_is_it_fails_at_once(world):
    heard_of(world, "gone", ago=SEEN + timedelta(minutes=1))
    job = world.job(lacking(world))
    assert (job.state, job.failure_kind) == (JobState.FAILED, FailureKind.PERMANENT)
    assert job.failure_reason == "environment_missing"


def test_it_fails_once_all_have_tried(world):
    heard_of(world, "w2")
    job_id = lacking(world)
    other = ScriptedWorker(world.client, name="w2")
    other.fail(other.claim(again(world, job_id)), "permanent", "environment_missing")
    assert world.job(job_id).state is JobState.FAILED


def test_one_that_never_comes_is_not_waited_for_for_ever(world):
    heard_of(world, "w2")
    job_id = lacking(world)
    with world.sessions.begin() as session:  # the worker's HTTP reads the real clock
        session.execute(
            update(Attempt).where(Attempt.job_id == job_id).values(finished_at=world.clock() - 2 * WAITED_FOR)
        )
    claim = world.worker.claim(again(world, job_id))
    world.worker.fail(claim, "permanent", "environment_missing")
    assert world.job(job_id).state is JobState.FAILED


@pytest.mark.parametrize(
    ("gpu_type", "state"), [("H100", JobState.QUEUED), ("H200", JobState.FAILED), (None, JobState.FAILED)]
)
def test_only_workers_of_its_queue_count(world, gpu_type, state):
    heard_of(world, "w2", gpu_type=gpu_type)
    message = world.evaluating()[0]
    with world.sessions.begin() as session:
        session.execute(update(Job).where(Job.id == message[1]).values(queue="gpu-H100"))
    world.worker.fail(world.worker.claim(message), "permanent", "environment_missing")
    assert world.job(message[1]).state is state


def test_a_failure_of_the_work_itself_goes_nowhere_else(world):
    heard_of(world, "w2")
    assert world.job(lacking(world, "kernels_do_not_import")).state is JobState.FAILED
