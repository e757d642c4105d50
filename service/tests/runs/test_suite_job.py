"""The repository's own tests as a job of both arms, and kernels under several releases of Triton, from rows to verdict."""

import pytest
from driftline.contracts.kernel_jobs import Suite, TritonRelease
from driftline.contracts.words import Arm, JobKind, JobState, SuiteResult
from driftline.report.builds import build_problems
from driftline_service.database.job_queries import jobs_of
from driftline_service.database.tables import Run
from driftline_service.judging import live_view, load_evidence

SUITE = Suite(paths=["tests"], import_from=["src"], seconds_per_test=7)


def view_of(world, run_id):
    with world.sessions() as session:
        return live_view(session, run_id)


def test_new_failures_make_the_run_red_and_are_named(world):
    world.worker.outcomes = {"base": {"a": "passed", "b": "failed"}, "head": {"a": "crashed", "b": "failed"}}
    run_id = world.submit(suite=SUITE)
    world.run_until_done(run_id)
    view = view_of(world, run_id)
    assert [test.node_id for test in view.suite.new_failures] == ["a"]
    assert [test.node_id for test in view.suite.known_failures] == ["b"]
    assert [(one.line, one.base_value, one.head_value) for one in view.suite.loosened] == [(3, 1e-3, 1e-2)]
    assert view.headline.color == "red"
    assert [job.kind for job in view.jobs if job.kind is JobKind.TESTS] == [JobKind.TESTS] * 2


def test_they_run_beside_the_check_with_what_was_configured_when_the_run_was_asked_for(world):
    world.submit(suite=SUITE)
    for message in world.messages():
        world.worker.work(message)
    claims = [world.worker.claim(message) for message in world.messages()]
    assert sorted(claim.spec.kind for claim in claims) == ["check", "check", "tests", "tests"]
    assert [claim.spec.suite for claim in claims if claim.spec.kind == "tests"] == [SUITE, SUITE]


def test_a_run_without_a_suite_has_no_such_job(world):
    run_id = world.submit()
    world.run_until_done(run_id)
    with world.sessions() as session:
        assert JobKind.TESTS not in {job.kind for job in jobs_of(session, run_id)}
    assert view_of(world, run_id).suite is None


def test_tests_that_were_asked_and_did_not_run_are_not_judged(world):
    run_id = world.submit(suite=SUITE)
    while messages := world.messages():
        for message in messages:
            claim = world.worker.claim(message)
            if claim.spec.kind == "tests":
                world.worker.fail(claim, "unsupported", "no_tests")
            else:
                world.worker.complete(claim)
    view = view_of(world, run_id)
    assert view.suite.result is SuiteResult.NOT_JUDGED
    assert view.headline.color != "green"


def test_an_attempt_without_a_test_is_incomplete(world):
    world.submit(suite=SUITE)
    for message in world.messages():
        world.worker.work(message)
    claim = next(c for c in (world.worker.claim(m) for m in world.messages()) if c.spec.kind == "tests")
    world.worker.report(claim, [])
    assert world.worker.finish(claim).json() == {"action": "stop", "reason": "no test was reported"}


def test_a_base_that_ran_the_same_command_is_not_run_again(world):
    world.run_until_done(world.submit(suite=SUITE))
    for suite, state in (
        (SUITE, JobState.SUCCEEDED),
        (SUITE.model_copy(update={"arguments": ["-x"]}), JobState.QUEUED),
    ):
        run_id = world.submit(suite=suite)
        for message in world.messages():
            world.worker.work(message)
        world.messages()
        with world.sessions() as session:
            [base] = [job for job in jobs_of(session, run_id) if (job.kind, job.arm) == (JobKind.TESTS, Arm.BASE)]
            assert (base.state, base.reused_from_job_id is not None) == (state, state is JobState.SUCCEEDED)


@pytest.mark.parametrize(("there", "listed"), [("passed", 1), ("skipped", 0), ("failed", 0)])
def test_a_failure_that_passes_on_another_gpu_is_told(world, there, listed):
    world.worker.facts = world.worker.facts.model_copy(update={"gpu_type": "H100"})
    world.worker.outcomes = {"base": {"a": there}, "head": {"a": there}}
    world.run_until_done(world.submit(suite=SUITE, measure_noise=True))
    world.worker.facts = world.worker.facts.model_copy(update={"gpu_type": "A100"})
    world.worker.outcomes = {"base": {"a": "failed"}, "head": {"a": "failed"}}
    run_id = world.submit(suite=SUITE, measure_noise=True)
    world.run_until_done(run_id)
    found = [(one.here, one.here_outcome, one.there, one.there_outcome) for one in view_of(world, run_id).suite.by_gpu]
    assert found == [("A100", "failed", "H100", "passed")] * listed


def test_kernels_are_compiled_under_the_tritons_of_the_run(world):
    tritons = (
        TritonRelease(name="3.6", version="3.6.0"),
        TritonRelease(name="3.9", version="3.9.0", folder=".triton/x", architectures=[90]),
    )
    run_id = world.submit(tritons=tritons)
    claims = [world.worker.claim(message) for message in world.messages()]
    build = {"type": "kernel_build", "kernel": "scan", "config": "64", "arch": "sm_90"}
    for claim in claims:
        assert tuple(claim.spec.tritons) == tritons
        good = build | {"compiled": True, "registers": 9, "spills": 0, "shared_memory": 1, "triton": "3.6.0"}
        bad = {"compiled": False, "error": "no tl.squeeze", "triton": "3.9.0"}
        newer = build | (bad if claim.spec.arm is Arm.HEAD else good | {"triton": "3.9.0"})
        told = {
            "type": "environment",
            "must_match": {},
            "recorded": {"Triton 3.7": "not asked: it is not on this worker"},
        }
        world.worker.report(claim, [good, newer, told])
        world.worker.finish(claim)
    world.run_until_done(run_id)
    view = view_of(world, run_id)
    assert [(one.triton, one.head_error) for one in view.builds] == [("3.6.0", ""), ("3.9.0", "no tl.squeeze")]
    assert view.build_notes == ["Triton 3.7: not asked: it is not on this worker"]
    assert "no longer compiles for sm_90 under Triton 3.9.0: scan: no tl.squeeze" in build_problems(view)


def test_a_suite_is_frozen_into_its_run_and_pending_at_first(world):
    run_id = world.submit(suite=SUITE)
    with world.sessions() as session:
        assert session.get_one(Run, run_id).suite["seconds_per_test"] == 7
        assert load_evidence(session, run_id).suites == {Arm.BASE: None, Arm.HEAD: None}
