"""Claims: once, with the right token, for a job that is to be had."""

from datetime import timedelta

import pytest
from driftline.contracts.words import JobState
from driftline.questions import fixed_order
from driftline_service.database.tables import ClaimToken, Worker
from driftline_service.dispatch.tokens import hash_of
from sqlalchemy import select, update


def test_what_a_worker_is_told(world):
    messages = world.evaluating()
    claim = world.worker.claim(messages[0])
    job = world.job(messages[0][1])
    assert job.state is JobState.RUNNING
    assert claim.lease_seconds == 60
    spec = claim.spec.model_dump(mode="json")
    assert spec["kind"] == "evaluate"
    assert spec["doc_ids"] == fixed_order(10, 3)
    assert (spec["block"], spec["batch_size"]) == (100, 4)
    assert spec["lane"] == world.lane().model_dump(mode="json")
    assert spec["source"] == {
        "url": "https://example.org/kernels.git", "sha": job.commit_sha, "layout": "mamba2_varlen",
        "kernel_path": "kernels",
    }  # fmt: skip


def test_no_secret_is_told_or_kept(world):
    world.submit()
    message = world.messages()[0]
    claim = world.worker.claim(message)
    told = claim.model_dump_json()
    assert "postgresql" not in told and message[2] not in told
    with world.sessions() as session:
        stored = session.scalars(select(ClaimToken.token_hash)).all()
    assert hash_of(message[2]) in stored
    assert message[2] not in stored


@pytest.mark.parametrize("token", ["guess", "\xff"])
def test_a_wrong_token_is_401(world, token):
    world.submit()
    job_id = world.messages()[0][1]
    refused = world.client.post(
        f"/worker/v1/jobs/{job_id}/claim",
        json={"worker": world.worker.facts.model_dump()},
        headers={"Authorization": f"Bearer {token}".encode("latin-1")},
    )
    assert (refused.status_code, refused.json()["reason"]) == (401, "wrong_token")


def test_another_jobs_token_is_401(world):
    world.submit()
    first, second = world.messages()
    assert world.worker.try_claim(first[1], second[2]).status_code == 401
    assert world.job(first[1]).state is JobState.QUEUED


def test_a_token_is_spent_once_and_expires(world):
    world.submit()
    first, second = world.messages()
    world.worker.claim(first)
    assert world.worker.try_claim(first[1], first[2]).status_code == 401
    with world.sessions.begin() as session:
        session.execute(update(ClaimToken).values(expires_at=world.clock() - timedelta(seconds=1)))
    assert world.worker.try_claim(second[1], second[2]).status_code == 401


def test_the_worker_is_remembered(world):
    world.submit()
    world.worker.claim(world.messages()[0])
    with world.sessions() as session:
        facts = session.get_one(Worker, "w1").facts
    assert facts == world.worker.facts.model_dump(mode="json")


def test_unknown_fields_are_refused(world):
    world.submit()
    _, job_id, token = world.messages()[0]
    body = {"worker": world.worker.facts.model_dump() | {"database_url": "postgresql://"}}
    refused = world.worker.post(f"/jobs/{job_id}/claim", token, body)
    assert (refused.status_code, refused.json()["reason"]) == (422, "malformed")
    assert "database_url" in refused.json()["detail"]
    assert world.job(job_id).state is JobState.QUEUED
