"""Evidence is what was adopted: nothing of failed attempts, everything of good ones, partial while a run goes on."""

import pytest
from driftline.contracts.words import Arm, FailureKind, JobState, RunState
from driftline.evidence import ArmFailure, CheckEvidence, EvaluationEvidence
from driftline_service.database.tables import Job
from driftline_service.judging import job_views, live_view, load_evidence
from sqlalchemy import update


def evidence(world, run_id):
    with world.sessions() as session:
        return load_evidence(session, run_id)


def test_partial_evidence_grows(world):
    run_id = world.submit()
    found = evidence(world, run_id)
    assert (found.lanes[0].base, found.lanes[0].head) == (None, None)
    assert found.checks == found.builds == {Arm.BASE: None, Arm.HEAD: None}
    world.reach(run_id, RunState.EVALUATING)
    found = evidence(world, run_id)
    assert [build.registers for build in found.builds[Arm.HEAD]] == [96]
    check = found.checks[Arm.BASE]
    assert isinstance(check, CheckEvidence)
    assert (check.summary.device, check.cases[0].max_abs_err) == ("cpu", 1e-6)
    assert found.lanes[0].head is None


def test_a_whole_evaluation(world):
    run_id = world.submit()
    world.run_until_done(run_id)
    arm = evidence(world, run_id).lanes[0].head
    assert isinstance(arm, EvaluationEvidence)
    assert [sample.doc_id for sample in arm.samples] == list(arm.expected_doc_ids)
    assert arm.scores.right["strict-match"] == sorted(arm.expected_doc_ids)
    assert (arm.must_match, arm.recorded) == ({"model": "canary@1"}, {"torch": "2.13"})
    assert (arm.attempts, arm.reused_from) == (1, None)


def test_a_failed_head_on_bases_worker_is_told_apart(world):
    other = type(world.worker)(world.client, name="w2")
    for worker, same in ((world.worker, True), (other, False)):
        run_id = world.submit(measure_noise=True)
        messages = world.reach(run_id, RunState.EVALUATING)
        base, head = sorted(messages, key=lambda message: world.job(message[1]).arm)
        world.worker.work(base)
        worker.fail(worker.claim(head), "permanent", "child_died")
        assert evidence(world, run_id).lanes[0].head == ArmFailure(
            FailureKind.PERMANENT, "child_died", "exit 1", attempts=1, same_worker_as_base=same
        )
        world.messages()
        assert world.run(run_id).state is RunState.DONE


@pytest.mark.parametrize(
    ("reason", "blamed"),
    [
        ("child_died", True),
        ("scratch_full", True),
        ("git_failed", False),
    ],
)
def test_a_fault_of_the_machinery_is_not_the_commits(world, reason, blamed):
    run_id = world.submit(measure_noise=True)
    base, head = sorted(world.reach(run_id, RunState.EVALUATING), key=lambda message: world.job(message[1]).arm)
    world.worker.work(base)
    for number in (1, 2, 3):
        if number > 1:
            world.clock.pass_seconds(60)
            (head,) = world.messages()
            with world.sessions.begin() as session:  # the worker's HTTP reads the real clock
                session.execute(update(Job).where(Job.id == head[1]).values(not_before=None))
        world.worker.fail(world.worker.claim(head), "transient", reason)
    failure = evidence(world, run_id).lanes[0].head
    assert (failure.attempts, failure.reason, failure.same_worker_as_base) == (3, reason, blamed)


def test_noise_comes_from_evaluations_of_one_commit(world):
    first = world.submit(measure_noise=True)
    world.run_until_done(first)
    assert evidence(world, first).lanes[0].noise is None  # two commits, each once
    second = world.submit(measure_noise=True)
    world.run_until_done(second)
    noise = evidence(world, second).lanes[0].noise
    assert noise.pairs == 2  # base with base, head with head


def test_other_environments_make_no_noise(world):
    world.run_until_done(world.submit(measure_noise=True))
    second = world.submit(measure_noise=True)
    world.run_until_done(second, type(world.worker)(world.client, name="w2", environment_id="env-2"))
    assert evidence(world, second).lanes[0].noise is None


def test_jobs_are_shown_in_the_order_of_their_phases(world):
    run_id = world.submit(lanes=(world.lane("b V1"), world.lane("a V0")))
    claim = world.worker.claim(world.messages()[0])
    world.worker.report(claim, [{"type": "progress", "phase": "compile", "done": 2, "total": 9}])
    with world.sessions() as session:
        views = job_views(session, run_id)
    assert [(view.kind, view.arm, view.lane) for view in views] == [
        ("build", "base", None), ("build", "head", None), ("check", "base", None), ("check", "head", None),
        ("evaluate", "base", "b V1"), ("evaluate", "head", "b V1"), ("evaluate", "base", "a V0"),
        ("evaluate", "head", "a V0"),
    ]  # fmt: skip
    running = next(view for view in views if view.state is JobState.RUNNING)
    assert (running.phase, running.done, running.total, running.attempts) == ("compile", 2, 9, 1)


def test_a_view_is_live_until_it_is_stored(world):
    run_id = world.submit()
    with world.sessions() as session:
        assert live_view(session, run_id).state is RunState.QUEUED
    world.run_until_done(run_id)
    with world.sessions() as session:
        view = live_view(session, run_id)
    assert view.state is RunState.DONE
    assert view.events[-1].kind == "run_done"
    assert view.finished_at == world.run(run_id).finished_at
