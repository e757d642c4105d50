"""A run from its request to its verdict, through the real database and the worker's real HTTP."""

from driftline.contracts.words import JobState, RunState
from driftline_service.database.job_queries import jobs_of
from driftline_service.judging import live_view


def test_from_request_to_verdict(world):
    run_id = world.submit(lanes=(world.lane("canary V0"), world.lane("canary V1")))
    run = world.run_until_done(run_id)
    assert run.state is RunState.DONE
    assert run.view is not None and run.view["state"] == "done"
    assert run.method_version and run.inputs_hash
    with world.sessions() as session:
        jobs = jobs_of(session, run_id)
        view = live_view(session, run_id)
    assert len(jobs) == 8
    assert {job.state for job in jobs} == {JobState.SUCCEEDED}
    assert [event.kind for event in view.events][-2:] == ["run_judging", "run_done"]
    phases = [kind for kind in world.events(run_id) if kind.startswith("run_")]
    assert phases == [
        "run_submitted", "run_building", "run_checking", "run_evaluating", "run_judging", "run_done",
    ]  # fmt: skip


def test_phases_follow_each_other_and_arms_run_side_by_side(world):
    run_id = world.submit()
    for kind in ("build", "check", "evaluate"):
        messages = world.messages()
        jobs = [world.job(job_id) for _, job_id, _ in messages]
        assert sorted((job.kind, job.arm) for job in jobs) == [(kind, "base"), (kind, "head")]
        for message in messages:
            world.worker.work(message)
    assert world.messages() == []
    assert world.run(run_id).state is RunState.DONE


def test_a_failed_build_and_check_do_not_stop_the_run(world):
    run_id = world.submit()
    for _ in range(2):
        for message in world.messages():
            world.worker.fail(world.worker.claim(message), "permanent", "does_not_import")
    for message in world.messages():
        world.worker.work(message)
    assert world.messages() == []
    assert world.run(run_id).state is RunState.DONE


def test_a_vanished_commit_fails_the_run(world):
    run_id = world.submit()
    messages = world.messages()
    world.worker.fail(world.worker.claim(messages[0]), "permanent", "unknown_commit")
    assert world.messages() == []
    run = world.run(run_id)
    assert (run.state, run.failure_reason) == (RunState.FAILED, "unknown_commit")
    assert world.job(messages[1][1]).state is JobState.CANCELLED
    assert world.worker.try_claim(*messages[1][1:]).status_code == 409


def test_a_child_cannot_fail_the_run_by_claiming_that(world):
    run_id = world.submit()
    message = world.messages()[0]
    world.worker.fail(world.worker.claim(message), "permanent", "unknown_commit", child_seconds=1.5)
    world.messages()
    assert world.run(run_id).state is RunState.BUILDING
    assert world.job(message[1]).failure_reason == "child_unknown_commit"


def test_a_bug_in_one_judgement_leaves_the_others_running(world, monkeypatch):
    from driftline_service.runs import judgement

    real = judgement.judge
    broken = world.submit(name="poison")
    healthy = world.submit()
    monkeypatch.setattr(judgement, "judge", lambda evidence: 1 / 0 if evidence.name == "poison" else real(evidence))
    world.run_until_done(healthy)
    assert world.run(healthy).state is RunState.DONE
    run = world.run(broken)
    assert (run.state, run.failure_reason) == (RunState.FAILED, "internal_error")
    assert "ZeroDivisionError" in run.failure_message
