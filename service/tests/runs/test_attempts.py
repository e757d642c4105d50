"""Leases, retries and adoption: whatever is lost or late, each job adopts one attempt and each question counts once."""

import pytest
from driftline.contracts.words import Arm, AttemptState, FailureKind, JobState
from driftline_service.database.tables import Attempt, Sample
from driftline_service.judging import load_evidence
from driftline_service.runs.outcomes import MAX_ATTEMPTS
from sqlalchemy import func, select


def attempts(world, job_id):
    with world.sessions() as session:
        return session.scalars(select(Attempt).where(Attempt.job_id == job_id).order_by(Attempt.number)).all()


def samples(world):
    with world.sessions() as session:
        return session.execute(select(func.count()).select_from(Sample)).scalar_one()


def resend(world):
    """Let the back-off pass and take the job's next message."""
    world.clock.pass_seconds(60)
    return world.messages()


def test_a_lost_lease_queues_the_job_again_and_late_reports_do_not_count(world):
    message = world.evaluating()[0]
    lost = world.worker.claim(message)
    lines = world.worker.lines(lost.spec)
    assert world.worker.report(lost, lines).status_code == 200
    world.clock.pass_seconds(61)
    world.messages()
    assert attempts(world, message[1])[0].state is AttemptState.LOST
    assert world.job(message[1]).state is JobState.QUEUED
    assert samples(world) == 0
    for late in (world.worker.report(lost, lines, 1), world.worker.finish(lost, 1)):
        assert (late.status_code, late.json()["reason"]) == (410, "attempt_over")


def test_a_heartbeat_keeps_the_lease(world):
    run_id = world.submit()
    claim = world.worker.claim(world.messages()[0])
    with world.sessions.begin() as session:
        session.get_one(Attempt, claim.attempt_id).lease_until = world.clock()
    heard = world.worker.post(f"/attempts/{claim.attempt_id}/heartbeat", claim.attempt_token)
    assert heard.json() == {"action": "continue", "reason": ""}
    world.messages()
    assert world.job(claim.spec.job_id).state is JobState.RUNNING
    assert "attempt_lost" not in world.events(run_id)


@pytest.mark.parametrize("kind", [FailureKind.TRANSIENT, FailureKind.LOST])
def test_the_third_failure_is_the_last(world, kind, real_time):
    world.submit()
    job_id = None
    for number in range(1, MAX_ATTEMPTS + 1):
        messages = [sent for sent in world.messages() if job_id in (None, sent[1])]
        job_id = messages[0][1]
        claim = world.worker.claim(messages[0])
        if kind is FailureKind.TRANSIENT:
            world.worker.fail(claim, "transient")
        else:
            expire(world, claim)
            world.messages()
        expected = JobState.FAILED if number == MAX_ATTEMPTS else JobState.QUEUED
        assert world.job(job_id).state is expected
        real_time(world, job_id)
    assert world.job(job_id).failure_kind is kind
    assert len(attempts(world, job_id)) == MAX_ATTEMPTS


def expire(world, claim):
    with world.sessions.begin() as session:
        session.get_one(Attempt, claim.attempt_id).lease_until = world.clock() - world.clock().resolution * 10


@pytest.fixture
def real_time():
    """Skips a job's back-off: the worker's HTTP reads the real clock."""
    from driftline_service.database.tables import Job, OutboxMessage
    from sqlalchemy import update

    def skip(world, job_id):
        with world.sessions.begin() as session:
            session.execute(update(Job).where(Job.id == job_id).values(not_before=None))
            due = world.clock() - world.clock().resolution
            waiting = update(OutboxMessage).where(OutboxMessage.job_id == job_id, OutboxMessage.sent_at.is_(None))
            session.execute(waiting.values(not_before=due))

    return skip


def fail_again(world, job_id, reason, real_time):
    """Take the job's next message and fail it."""
    real_time(world, job_id)
    message = next(sent for sent in world.messages() if sent[1] == job_id)
    world.worker.fail(world.worker.claim(message), "transient", reason)
    return world.job(job_id)


def test_a_worker_that_is_stopped_or_full_costs_no_attempt(world, real_time):
    world.submit()
    message = world.messages()[0]
    job_id = message[1]
    world.worker.fail(world.worker.claim(message), "transient", "worker_stopped")
    (again,) = world.messages()  # no back-off
    world.worker.fail(world.worker.claim(again), "transient", "worker_stopped")
    for reason in ("worker_stopped", "disk_full", "disk_full", "disk_full", "child_died", "child_died"):
        assert fail_again(world, job_id, reason, real_time).state is JobState.QUEUED
    assert fail_again(world, job_id, "child_died", real_time).state is JobState.FAILED
    assert len(attempts(world, job_id)) == 6 + MAX_ATTEMPTS


def test_what_a_dead_worker_held_is_sent_again_at_once_and_counts(world):
    world.submit()
    message = world.messages()[0]
    for number in range(1, MAX_ATTEMPTS + 1):
        world.worker.fail(world.worker.claim(message), "transient", "worker_died")
        expected = JobState.FAILED if number == MAX_ATTEMPTS else JobState.QUEUED
        assert world.job(message[1]).state is expected
        sent = world.messages()  # no time passed
        assert [job_id for _, job_id, _ in sent] == [message[1]][: MAX_ATTEMPTS - number]
        message = sent[0] if sent else message


@pytest.mark.parametrize("reason", ["child_silent", "child_too_slow"])
def test_what_hangs_twice_is_not_tried_a_third_time(world, reason, real_time):
    world.submit()
    messages = world.messages()
    job_id = messages[0][1]
    world.worker.fail(world.worker.claim(messages[0]), "transient", reason)
    assert world.job(job_id).state is JobState.QUEUED
    job = fail_again(world, job_id, reason, real_time)
    assert (job.state, job.failure_kind, job.failure_reason) == (JobState.FAILED, FailureKind.TRANSIENT, reason)


def test_an_arm_that_hung_twice_gets_one_try_at_each_later_job(world, real_time):
    run_id = world.submit()
    base, head = sorted(world.messages(), key=lambda message: world.job(message[1]).arm)
    world.worker.work(base)
    world.worker.fail(world.worker.claim(head), "transient", "child_silent")
    fail_again(world, head[1], "child_silent", real_time)
    base, head = sorted(world.messages(), key=lambda message: world.job(message[1]).arm)
    world.worker.fail(world.worker.claim(base), "transient", "child_silent")
    assert world.job(base[1]).state is JobState.QUEUED, "the other arm did not hang before"
    world.worker.fail(world.worker.claim(head), "transient", "child_silent")
    assert (world.job(head[1]).state, len(attempts(world, head[1]))) == (JobState.FAILED, 1)
    real_time(world, base[1])
    world.worker.work(world.messages()[0])
    with world.sessions() as session:
        failure = load_evidence(session, run_id).checks[Arm.HEAD]
    assert (failure.same_worker_as_base, failure.attempts) == (True, 3), "so head is to blame, though it is tried once"


def test_back_off_is_kept(world):
    world.submit()
    message = world.messages()[0]
    world.worker.fail(world.worker.claim(message), "transient")
    assert [sent for sent in world.messages() if sent[1] == message[1]] == []
    world.clock.pass_seconds(6)
    assert [sent[1] for sent in world.messages()] == [message[1]]


@pytest.mark.parametrize("kind", ["permanent", "unsupported"])
def test_some_failures_are_final_at_once(world, kind):
    world.submit()
    message = world.messages()[0]
    world.worker.fail(world.worker.claim(message), kind, "no_v0")
    job = world.job(message[1])
    assert (job.state, job.failure_kind, job.failure_reason) == (JobState.FAILED, kind, "no_v0")


def test_only_one_of_two_attempts_is_adopted(world, real_time):
    """The first attempt is lost, not dead: it succeeds after the second did."""
    message = world.evaluating()[0]
    first = world.worker.claim(message)
    world.worker.report(first, world.worker.lines(first.spec))
    expire(world, first)
    world.messages()
    real_time(world, message[1])
    second = world.worker.work(next(sent for sent in world.messages() if sent[1] == message[1]))
    assert world.worker.finish(first).status_code == 410
    job = world.job(message[1])
    assert (job.state, job.adopted_attempt_id) == (JobState.SUCCEEDED, second.attempt_id)
    assert samples(world) == 3
    assert world.worker.finish(second).json()["action"] == "continue"  # its answer was lost, say
    assert world.events(second.spec.run_id).count("job_succeeded") == 1


def test_a_message_that_never_arrived_is_sent_again(world):
    world.submit()
    lost = world.messages()
    assert len(lost) == 2
    assert world.messages() == []
    world.clock.pass_seconds(31)
    again = world.messages()
    assert {sent[1] for sent in again} == {sent[1] for sent in lost}
    assert {sent[2] for sent in again}.isdisjoint({sent[2] for sent in lost})
    world.clock.pass_seconds(31)
    assert world.messages() == []  # the wait doubles
    world.clock.pass_seconds(31)
    assert len(world.messages()) == 2


def test_a_message_that_came_twice_starts_one_attempt(world):
    world.submit()
    first = world.messages()
    world.clock.pass_seconds(31)
    second = next(sent for sent in world.messages() if sent[1] == first[0][1])
    world.worker.claim(first[0])
    refused = world.worker.try_claim(second[1], second[2])
    assert (refused.status_code, refused.json()["reason"]) == (409, "not_available")
    assert len(attempts(world, second[1])) == 1
