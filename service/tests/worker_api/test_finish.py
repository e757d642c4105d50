"""An attempt is believed when everything asked for is there, else it failed."""

import pytest
from driftline.contracts.words import FailureKind, JobState, RunState
from driftline_service.database.tables import Attempt


@pytest.fixture
def evaluation(world):
    return world.worker.claim(world.evaluating()[0])


def attempt(world, claim):
    with world.sessions() as session:
        return session.get_one(Attempt, claim.attempt_id)


@pytest.mark.parametrize("missing", ["sample", "teacher_forced", "scores", "environment"])
def test_a_gap_in_the_evidence_is_a_failed_attempt(world, evaluation, missing):
    lines = world.worker.lines(evaluation.spec)
    first = next(line for line in lines if line["type"] == missing)
    world.worker.report(evaluation, [line for line in lines if line is not first])
    answer = world.worker.finish(evaluation).json()
    assert answer["action"] == "stop"
    found = attempt(world, evaluation)
    assert (found.failure_kind, found.failure_reason) == (FailureKind.TRANSIENT, "incomplete")
    assert found.message == answer["reason"] != ""
    assert world.job(evaluation.spec.job_id).state is JobState.QUEUED


def test_a_lost_batch_is_a_failed_attempt(world, evaluation):
    world.worker.report(evaluation, world.worker.lines(evaluation.spec))
    assert world.worker.finish(evaluation, 2).json()["action"] == "stop"
    assert attempt(world, evaluation).message == "2 batches were sent and 1 are stored"


@pytest.mark.parametrize("kind", ["build", "check"])
def test_an_empty_build_or_check_is_a_failed_attempt(world, kind):
    run_id = world.submit()
    state = {"build": RunState.QUEUED, "check": RunState.CHECKING}[kind]
    claim = world.worker.claim(world.reach(run_id, state)[0])
    assert claim.spec.kind == kind
    assert world.worker.finish(claim, 0).json()["action"] == "stop"
    assert attempt(world, claim).failure_reason == "incomplete"


@pytest.mark.parametrize("kind", [None, "lost"])
def test_only_the_service_says_lost(world, evaluation, kind):
    refused = world.worker.finish(evaluation, 0, outcome="failed", failure_kind=kind)
    assert (refused.status_code, refused.json()["reason"]) == (422, "malformed")
    assert world.job(evaluation.spec.job_id).state is JobState.RUNNING


def test_what_the_worker_saw_is_kept(world, evaluation):
    world.worker.report(evaluation, world.worker.lines(evaluation.spec))
    world.worker.finish(evaluation, 1, dropped_lines=7, child_seconds=12.5)
    found = attempt(world, evaluation)
    assert (found.dropped_lines, found.child_seconds) == (7, 12.5)
    assert found.must_match == {"model": "canary@1"}
    assert found.scores["metrics"]["exact_match,strict-match"] == 1.0
