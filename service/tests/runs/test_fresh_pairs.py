"""A first hit is measured once more: planned by the reconciler, by another worker where there is one, never for ever."""

from dataclasses import replace

import pytest
from driftline.contracts.words import Arm, Confirmed, JobState, RunState, Verdict
from driftline.report.markdown import markdown
from driftline.report.public import run_report
from driftline_service.database import job_queries
from driftline_service.database.tables import Attempt, Job, OutboxMessage, Worker
from driftline_service.github.rendering import Standing, comment
from driftline_service.judging import live_view
from driftline_service.runs.cancellation import cancel
from driftline_service.runs.fresh_pairs import ANOTHER_WORKER, LONGEST_WAIT, UNCLAIMED
from scripted.worker import ScriptedWorker
from sqlalchemy import select, update

QUESTIONS = 40
HIT = 12
"""Answers lost: exact McNemar's p is 0.0005, and what is left cannot be inside the margin."""


class Drifting(ScriptedWorker):
    """Head gets its first questions wrong in the pairs that are named."""

    wrong = (True, True)
    """by pair; later ones are as the last"""
    missed = HIT

    def lines(self, spec):
        lines = super().lines(spec)
        if spec.kind != "evaluate" or spec.arm is not Arm.HEAD or not self.wrong[min(self.pair(spec), 1)]:
            return lines
        missed = set(spec.doc_ids[: self.missed])
        for line in lines:
            if line["type"] == "sample" and line["doc_id"] in missed:
                line["response"] = "so #### 41"
            elif line["type"] == "scores":
                right = [doc_id for doc_id in spec.doc_ids if doc_id not in missed]
                line["right"] = dict.fromkeys(line["right"], sorted(right))
                line["metrics"] = dict.fromkeys(line["metrics"], len(right) / len(spec.doc_ids))
        return lines


@pytest.fixture
def worker(world):
    made = Drifting(world.client)
    made.pair = lambda spec: world.job(spec.job_id).pair
    return made


@pytest.fixture
def lane(world):
    usual = world.lane()
    task = usual.task.model_copy(update={"total_questions": QUESTIONS})
    return usual.model_copy(update={"task": task, "questions": QUESTIONS})


def pairs(world, run_id):
    with world.sessions() as session:
        jobs = [job for job in job_queries.jobs_of(session, run_id) if job.kind == "evaluate"]
    return sorted((job.pair, job.arm.value, job.state.value) for job in jobs)


def view_of(world, run_id):
    with world.sessions() as session:
        return live_view(session, run_id)


def suspected(world, worker, lane):
    """A run whose first pair shows a drop, and the messages of its fresh pair."""
    run_id = world.submit(lanes=(lane,))
    while len(pairs(world, run_id)) == 2:
        for message in world.messages():
            worker.work(message)
        world.reconciler.step()
    return run_id, world.messages()


def test_a_hit_is_confirmed_by_a_fresh_pair(world, worker, lane):
    run_id = world.submit(lanes=(lane,))
    assert world.run_until_done(run_id, worker).state is RunState.DONE
    assert pairs(world, run_id) == [
        (0, "base", "succeeded"), (0, "head", "succeeded"), (1, "base", "succeeded"), (1, "head", "succeeded"),
    ]  # fmt: skip
    view = view_of(world, run_id)
    assert (view.verdict, view.lanes[0].confirmed) == (Verdict.REGRESSED, Confirmed.YES)
    assert view.headline.sentence.startswith("Accuracy regressed on canary V1, confirmed by a fresh pair.")
    assert "a fresh pair agrees: strict-match regressed again (one-sided p = 0.00024)" in view.lanes[0].reasons
    assert "### canary V1: regressed, confirmed\n" in markdown(view)
    assert run_report(view).lanes[0].confirmed is Confirmed.YES
    assert view.lanes[0].noise.pairs == 2, "base with base, head with head"
    phases = [event.kind for event in view.events if event.kind.startswith(("run_", "confirmation"))]
    assert phases[3:] == [
        "run_evaluating", "run_judging", "confirmation_planned", "run_judging", "run_done",
    ]  # fmt: skip


def test_an_unlucky_run_stays_suspected(world, worker, lane):
    worker.wrong, worker.missed = (True, False), 8
    run_id = world.submit(lanes=(lane,))
    world.run_until_done(run_id, worker)
    view = view_of(world, run_id)
    assert (view.verdict, view.lanes[0].confirmed) == (Verdict.REGRESSED, Confirmed.NO)
    assert "a fresh pair does not agree on strict-match (one-sided p = 1)" in view.lanes[0].reasons


def test_a_lane_whose_head_answers_otherwise_the_next_time_blames_nobody(world, worker, lane):
    worker.wrong = (True, False)
    run_id = world.submit(lanes=(lane,))
    world.run_until_done(run_id, worker)
    view = view_of(world, run_id)
    assert (view.verdict, view.lanes[0].confirmed) == (Verdict.NOT_COMPARABLE, Confirmed.NO)
    assert view.lanes[0].unstable


def test_while_it_runs_readers_see_suspected_and_what_is_left(world, worker, lane):
    run_id, messages = suspected(world, worker, lane)
    assert sorted(world.job(job_id).arm for _, job_id, _ in messages) == [Arm.BASE, Arm.HEAD]
    view = view_of(world, run_id)
    assert view.state is RunState.EVALUATING
    assert view.headline.sentence.startswith("Suspected: Accuracy regressed on canary V1.")
    assert "suspected: a fresh pair is being measured" in view.lanes[0].reasons
    assert view.remaining_seconds is not None
    shown = comment(view, standing=Standing(view.head, "main"), notice="", public_url="http://drift.example.org")
    assert "evaluating, about" in shown and "Suspected: Accuracy regressed on canary V1." in shown
    (planned,) = [event.message for event in view.events if event.kind == "confirmation_planned"]
    assert planned.startswith("suspected on canary V1: a fresh pair is measured to confirm it (about 1 min")
    assert [job.pair for job in view.jobs if job.lane] == [0, 0, 1, 1]


def test_no_hit_and_no_wish_for_it_plan_nothing(world, worker, lane):
    quiet = world.submit(lanes=(lane,))
    world.run_until_done(quiet)
    unwanted = world.submit(lanes=(lane,), confirm=False, head=other_head(world))
    world.run_until_done(unwanted, worker)
    noise = world.submit(lanes=(lane,), measure_noise=True)
    world.run_until_done(noise, worker)
    for run_id in (quiet, unwanted, noise):
        assert len(pairs(world, run_id)) == 2
    assert view_of(world, unwanted).lanes[0].confirmed is not Confirmed.YES


def other_head(world):
    return replace(world.new_run().head, sha="f" * 40, kernel_tree="f" * 40)


def test_a_bit_identical_lane_needs_no_fresh_pair(world, worker, lane):
    for _ in range(2):
        world.run_until_done(world.submit(lanes=(lane,), measure_noise=True, head=world.new_run().base))
    run_id = world.submit(lanes=(lane,))
    world.run_until_done(run_id, worker)
    assert len(pairs(world, run_id)) == 2
    assert view_of(world, run_id).lanes[0].confirmed is Confirmed.NOT_NEEDED


def test_the_base_is_measured_anew_although_it_is_known(world, worker, lane):
    world.run_until_done(world.submit(lanes=(lane,)))
    run_id = world.submit(lanes=(lane,), head=other_head(world))
    world.run_until_done(run_id, worker)
    with world.sessions() as session:
        jobs = [job for job in job_queries.jobs_of(session, run_id) if job.kind == "evaluate" and job.arm is Arm.BASE]
    assert {job.pair: job.reused_from_job_id is None for job in jobs} == {0: False, 1: True}
    assert view_of(world, run_id).lanes[0].confirmed is Confirmed.YES


def test_another_worker_is_preferred_and_not_waited_for_long(world, worker, lane):
    run_id, messages = suspected(world, worker, lane)
    with world.sessions.begin() as session:
        facts = worker.facts.model_copy(update={"name": "w2"})
        session.add(Worker(name="w2", facts=facts.model_dump(mode="json"), last_seen=world.clock()))
    refused = [worker.try_claim(job_id, token) for _, job_id, token in messages]
    assert [answer.json()["reason"] for answer in refused] == ["left_to_another"] * 2
    world.clock.pass_seconds(6)
    first, second = world.messages()
    other = Drifting(world.client, name="w2")
    other.pair = worker.pair
    other.work(first)
    with world.sessions.begin() as session:  # the worker's HTTP reads the real clock
        session.execute(update(OutboxMessage).values(sent_at=world.clock() - 2 * ANOTHER_WORKER))
    worker.work(second)
    world.messages()
    assert view_of(world, run_id).lanes[0].confirmed is Confirmed.YES


def test_a_fresh_pair_that_nobody_takes_is_given_up(world, worker, lane):
    run_id, _ = suspected(world, worker, lane)
    world.clock.pass_seconds(UNCLAIMED.total_seconds() + 60)
    world.messages()
    assert world.run(run_id).state is RunState.DONE
    assert pairs(world, run_id)[2:] == [(1, "base", "cancelled"), (1, "head", "cancelled")]
    view = view_of(world, run_id)
    assert (view.verdict, view.lanes[0].confirmed) == (Verdict.REGRESSED, Confirmed.NO)
    assert (
        "suspected: no fresh pair came: base: no worker took it for an hour; head: no worker took it for an hour"
        in (view.lanes[0].reasons)
    )
    assert "### canary V1: regressed, suspected, not confirmed\n" in markdown(view)


def test_workers_that_are_busy_with_other_work_are_waited_for_up_to_a_day(world, worker, lane):
    run_id, (first, _) = suspected(world, worker, lane)
    worker.claim(first)
    world.clock.pass_seconds(UNCLAIMED.total_seconds() + 60)
    with world.sessions.begin() as session:
        session.execute(update(Job).where(Job.id == first[1]).values(started_at=world.clock()))
        session.execute(update(Attempt).values(lease_until=world.clock() + 2 * LONGEST_WAIT))
    world.messages()
    assert {state for pair, _, state in pairs(world, run_id) if pair} == {"running", "queued"}
    world.clock.pass_seconds(LONGEST_WAIT.total_seconds())
    world.messages()
    assert "cancelled" in [state for pair, _, state in pairs(world, run_id) if pair]


def test_a_fresh_pair_that_fails_leaves_the_hit_suspected(world, worker, lane):
    run_id, messages = suspected(world, worker, lane)
    for message in messages:
        worker.fail(worker.claim(message), "permanent", "out_of_memory")
    world.messages()
    view = view_of(world, run_id)
    assert (view.state, view.verdict, view.lanes[0].confirmed) == (RunState.DONE, Verdict.REGRESSED, Confirmed.NO)
    assert any(reason.startswith("suspected: no fresh pair came: base: ") for reason in view.lanes[0].reasons)


def test_cancelling_ends_the_fresh_pair_too(world, worker, lane):
    run_id, messages = suspected(world, worker, lane)
    claim = worker.claim(messages[0])
    with world.sessions.begin() as session:
        assert cancel(session, run_id, "seen enough")
    assert worker.report(claim, []).json()["action"] == "stop"
    with world.sessions() as session:
        states = set(session.scalars(select(Job.state).where(Job.run_id == run_id, Job.pair == 1)))
    assert states == {JobState.CANCELLED}
    assert world.messages() == []


def test_repeats_are_measured_one_after_the_other_and_tell_the_noise(world, worker, lane):
    run_id = world.submit(lanes=(lane,), repeats=2)
    seen = []
    while messages := world.messages():
        seen.append([world.job(job_id).pair for _, job_id, _ in messages])
        for message in messages:
            worker.work(message)
    assert [each for each in seen if each != [0, 0]] == [[1, 1], [2, 2]]
    view = view_of(world, run_id)
    assert view.lanes[0].noise.pairs == 4, "two of base with base, two of head with head"
    assert view.lanes[0].confirmed is Confirmed.YES, "the second pair is fresh"
    assert len(pairs(world, run_id)) == 6
