"""Batches are stored once and in order; what may not be reported ends the attempt and touches nothing else."""

from functools import partial

import pytest
from driftline.contracts.words import AttemptState, JobState
from driftline_service.database import result_queries
from driftline_service.database.storable import original
from driftline_service.database.tables import Attempt, Question, Sample
from driftline_service.worker_api import bodies
from sqlalchemy import func, select


@pytest.fixture
def evaluation(world):
    """A claimed evaluation of the head."""
    messages = world.evaluating()
    return world.worker.claim(next(sent for sent in messages if world.job(sent[1]).arm == "head"))


def attempt(world, claim):
    with world.sessions() as session:
        return session.get_one(Attempt, claim.attempt_id)


def stored(world, claim):
    with world.sessions() as session:
        return result_queries.samples_of(session, claim.attempt_id)


def test_a_batch_that_comes_twice_is_stored_once(world, evaluation):
    lines = world.worker.lines(evaluation.spec)
    for _ in range(2):
        assert world.worker.report(evaluation, lines).json()["action"] == "continue"
    assert len(stored(world, evaluation)) == 3
    assert attempt(world, evaluation).next_sequence == 1
    assert world.worker.finish(evaluation, 1).json()["action"] == "continue"


def test_a_batch_that_comes_too_early_is_409_and_may_come_again(world, evaluation):
    first, *rest = world.worker.lines(evaluation.spec)
    early = world.worker.report(evaluation, rest, 1)
    assert (early.status_code, early.json()["reason"]) == (409, "batch_missing")
    assert stored(world, evaluation) == ()
    world.worker.report(evaluation, [first], 0)
    assert world.worker.report(evaluation, rest, 1).status_code == 200
    assert len(stored(world, evaluation)) == 3


def test_samples_are_stored_as_reported_in_the_fixed_order(world, evaluation):
    doc_ids = evaluation.spec.doc_ids
    shuffled = [world.forced(doc_ids[1]), *(world.sample(doc_ids[rank], rank) for rank in (2, 0, 1))]
    world.worker.report(evaluation, shuffled)
    samples = stored(world, evaluation)
    assert [sample.doc_id for sample in samples] == doc_ids
    assert [sample.rank for sample in samples] == [0, 1, 2]
    assert [sample.logprobs is not None for sample in samples] == [False, True, False]
    assert samples[1].logprobs == b"\x00\x00\x00\xbf\x00\x00\x80\xbe\x00\x00\x00\xbe"  # -0.5, -0.25, -0.125
    assert samples[1].scored_prompt_tokens == 2
    assert samples[0].question == f"question {doc_ids[0]}?"


def test_progress_is_the_latest(world, evaluation):
    lines = [{"type": "progress", "phase": "generate", "done": done, "total": 3} for done in (1, 2)]
    world.worker.report(evaluation, lines)
    found = attempt(world, evaluation)
    assert (found.phase, found.done, found.total) == ("generate", 2, 3)


def unasked(world, doc_ids):
    return [world.sample(next(doc_id for doc_id in range(10) if doc_id not in doc_ids), 0)]


def twice(world, doc_ids):
    return [world.sample(doc_ids[0], 0), world.sample(doc_ids[0], 0, response="no, 43")]


def forced_twice(world, doc_ids):
    return [world.forced(doc_ids[0]), world.forced(doc_ids[0])]


def misplaced(world, doc_ids):
    return [world.sample(doc_ids[0], 1)]


def wrong_kind(world, doc_ids):
    return [{"type": "kernel_build", "kernel": "k", "config": "", "arch": "sm_80", "compiled": True}]


def cut_logprobs(world, doc_ids):
    return [world.forced(doc_ids[0]) | {"answer_tokens": 5}]


def scored_twice(world, doc_ids):
    return [world.scores(doc_ids), world.scores(doc_ids)]


def huge(world, doc_ids):
    return [world.sample(doc_ids[0], 0) | {"prompt_tokens": 2**40}]


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (unasked, "unasked_question"), (twice, "duplicate_answer"), (forced_twice, "duplicate_answer"),
        (misplaced, "wrong_rank"), (wrong_kind, "wrong_line"), (cut_logprobs, "bad_logprobs"),
        (scored_twice, "duplicate_line"), (huge, "number_too_large"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)  # fmt: skip
def test_forged_lines_end_their_own_attempt(world, evaluation, forge, reason):
    world.worker.report(evaluation, [world.sample(evaluation.spec.doc_ids[2], 2)])
    answer = world.worker.report(evaluation, forge(world, evaluation.spec.doc_ids), 1).json()
    assert answer["action"] == "stop"
    assert answer["reason"].startswith(reason)
    found = attempt(world, evaluation)
    assert (found.state, found.failure_reason) == (AttemptState.FAILED, reason)
    assert world.job(evaluation.spec.job_id).state is JobState.QUEUED
    assert stored(world, evaluation) == ()
    with world.sessions() as session:  # the other arm's job is as it was
        assert session.execute(select(func.count()).select_from(Attempt).where(Attempt.state == "failed")).scalar() == 1


def test_a_second_answer_in_a_later_batch_is_refused_too(world, evaluation):
    doc_id = evaluation.spec.doc_ids[0]
    world.worker.report(evaluation, [world.sample(doc_id, 0)])
    assert world.worker.report(evaluation, [world.sample(doc_id, 0)], 1).json()["action"] == "stop"


def test_a_forged_gold_answer_stays_with_its_attempt(world, evaluation):
    """Same question, same hashes, another target: other evaluations keep theirs."""
    doc_id = evaluation.spec.doc_ids[0]
    world.worker.report(evaluation, [world.sample(doc_id, 0, target="#### 666")])
    other = next(
        message for message in resent(world) if world.job(message[1]).arm == "base"
    )  # fmt: skip
    honest = world.worker.claim(other)
    world.worker.report(honest, [world.sample(doc_id, 0)])
    assert stored(world, honest)[0].target == "#### 42"
    assert stored(world, evaluation)[0].target == "#### 666"
    with world.sessions() as session:
        assert session.execute(select(func.count()).select_from(Question)).scalar_one() == 2


def resent(world):
    world.clock.pass_seconds(40)
    with world.sessions.begin() as session:  # the lease of the claimed one shall live
        for row in session.scalars(select(Attempt).where(Attempt.state == "running")):
            row.lease_until = world.clock()
            row.lease_until += world.clock.ahead
    return world.messages()


@pytest.mark.parametrize("response", ["nul \x00 42", "half \ud83d 42", "\udcff", "␛␀"])
def test_any_text_is_kept(world, evaluation, response):
    doc_id = evaluation.spec.doc_ids[0]
    answer = world.worker.report(evaluation, [world.sample(doc_id, 0, response=response)])
    assert answer.status_code == 200, answer.text
    assert original(stored(world, evaluation)[0].response) == response


def test_no_wrong_token_reports(world, evaluation):
    forged = evaluation.model_copy(update={"attempt_token": "guess"})
    for call in (partial(world.worker.report, forged, []), partial(world.worker.finish, forged)):
        assert call().status_code == 401
    unknown = evaluation.model_copy(update={"attempt_id": evaluation.spec.job_id})
    assert world.worker.report(unknown, []).status_code == 401


def test_another_jobs_token_reports_nothing(world):
    """The token of a living attempt opens that attempt alone; so does a claim token that was spent."""
    messages = world.evaluating()
    mine, other = (world.worker.claim(message) for message in messages[:2])
    before = attempt(world, other)
    for token in (mine.attempt_token, messages[1][2]):
        forged = other.model_copy(update={"attempt_token": token})
        answers = (
            world.worker.report(forged, world.worker.lines(other.spec)),
            world.worker.finish(forged, 0),
            world.worker.post(f"/attempts/{other.attempt_id}/heartbeat", token),
        )
        assert {(answer.status_code, answer.json()["reason"]) for answer in answers} == {(401, "wrong_token")}
    after = attempt(world, other)
    assert (after.state, after.lease_until, after.next_sequence) == (AttemptState.RUNNING, before.lease_until, 0)
    assert stored(world, other) == ()


GARBAGE = (b"", b"{", b"[]", b"\xff\xfe", b"[" * 200_000, b'{"sequence": -1, "lines": []}', b'{"sequence": 0}')


def test_garbage_is_422(world, evaluation):
    path = f"/worker/v1/attempts/{evaluation.attempt_id}/lines"
    for body in GARBAGE:
        refused = world.client.post(path, content=body, headers={"Authorization": f"Bearer {evaluation.attempt_token}"})
        assert (refused.status_code, refused.json()["reason"]) == (422, "malformed"), body[:20]
    assert attempt(world, evaluation).state is AttemptState.RUNNING


def test_a_flood_is_413(world, evaluation, monkeypatch):
    monkeypatch.setattr(bodies, "MAX_BATCH_BYTES", 1000)
    refused = world.worker.report(evaluation, world.worker.lines(evaluation.spec))
    assert (refused.status_code, refused.json()["reason"]) == (413, "body_too_large")
    with world.sessions() as session:
        assert session.execute(select(func.count()).select_from(Sample)).scalar_one() == 0
