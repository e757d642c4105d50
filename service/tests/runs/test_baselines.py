"""Earlier work stands for a base arm under the same key, and only then."""

from driftline.contracts.kernel_jobs import Suite
from driftline.contracts.words import Arm, JobKind, JobState, RunState
from driftline_service.database.job_queries import jobs_of
from driftline_service.judging import load_evidence
from driftline_service.runs.cancellation import cancel
from driftline_service.runs.submission import Commit

SUITE = Suite(paths=["tests"])
"""With it a run has jobs of every kind."""


def base_jobs(world, run_id, kind=JobKind.EVALUATE):
    with world.sessions() as session:
        jobs = jobs_of(session, run_id)
    return [job for job in jobs if job.arm is Arm.BASE and job.kind is kind]


def another_head():
    return Commit(ref="fix", sha="f" * 40, subject="a fix", kernel_path="kernels", kernel_tree="f" * 40)


def test_a_second_run_on_the_same_base_reuses_it(world):
    first = world.submit(suite=SUITE)
    world.run_until_done(first)
    second = world.submit(head=another_head(), suite=SUITE)
    assert world.run_until_done(second).state is RunState.DONE
    for kind in JobKind:
        (reused,), (fresh,) = base_jobs(world, second, kind), base_jobs(world, first, kind)
        assert reused.reused_from_job_id == fresh.id
        assert reused.adopted_attempt_id == fresh.adopted_attempt_id
    with world.sessions() as session:
        lane = load_evidence(session, second).lanes[0]
    assert lane.base.reused_from == first
    assert len(lane.base.samples) == 3
    assert lane.head.reused_from is None


def test_a_base_that_an_earlier_run_is_measuring_is_waited_for(world):
    first = world.submit(suite=SUITE)
    second = world.submit(head=another_head(), suite=SUITE)
    assert world.run_until_done(second).state is RunState.DONE
    assert world.run_until_done(first).state is RunState.DONE
    for kind in JobKind:
        (reused,), (fresh,) = base_jobs(world, second, kind), base_jobs(world, first, kind)
        assert reused.reused_from_job_id == fresh.id


def test_a_base_is_measured_after_all_when_the_earlier_run_gives_up(world):
    first = world.submit()
    second = world.submit(head=another_head())
    with world.sessions.begin() as session:
        cancel(session, first, "not needed any more")
    assert world.run_until_done(second).state is RunState.DONE
    assert base_jobs(world, second)[0].reused_from_job_id is None


def test_a_head_becomes_a_baseline_when_it_is_merged(world):
    first = world.submit()
    world.run_until_done(first)
    second = world.submit(base=world.new_run().head, head=another_head())
    world.run_until_done(second)
    assert base_jobs(world, second)[0].reused_from_job_id is not None


def test_noise_is_never_measured_against_a_baseline(world):
    world.run_until_done(world.submit())
    second = world.submit(head=another_head(), measure_noise=True)
    world.run_until_done(second)
    assert [job.reused_from_job_id for kind in JobKind for job in base_jobs(world, second, kind)] == [None] * 3


def test_another_lane_commit_path_or_repository_is_no_baseline(world):
    world.run_until_done(world.submit())
    usual = world.new_run().base
    moved = Commit(ref="m", sha=usual.sha, subject="m", kernel_path="elsewhere", kernel_tree=usual.kernel_tree)
    others = [
        {"lanes": (world.lane(questions=4),)}, {"base": another_head()}, {"base": moved},
        {"repository_url": "https://example.org/other.git"},
    ]  # fmt: skip
    for changes in others:
        arms = {world.job(job_id).arm for _, job_id, _ in world.evaluating(**changes)}
        assert Arm.BASE in arms, changes


def test_another_environment_is_no_baseline(world):
    world.run_until_done(world.submit())
    newer = type(world.worker)(world.client, name="w2", environment_id="env-2")
    second = world.submit(head=another_head())
    world.run_until_done(second, newer)
    evaluated = base_jobs(world, second)
    assert evaluated[-1].reused_from_job_id is None
    assert evaluated[-1].state is JobState.SUCCEEDED


def test_a_reused_base_is_measured_afresh_when_head_was_measured_otherwise(world):
    world.run_until_done(world.submit())
    second = world.submit(head=another_head())
    world.reach(second, RunState.EVALUATING)
    world.worker.must_match = {"model": "canary@2"}
    world.clock.pass_seconds(31)  # the messages above were not worked off
    assert world.run_until_done(second).state is RunState.DONE
    reused, fresh = sorted(base_jobs(world, second), key=lambda job: job.generation)
    assert (reused.generation, fresh.generation) == (0, 1)
    assert reused.reused_from_job_id is not None
    assert fresh.reused_from_job_id is None
    with world.sessions() as session:
        lane = load_evidence(session, second).lanes[0]
    assert lane.base.must_match == lane.head.must_match == {"model": "canary@2"}
    assert lane.base.reused_from is None
    assert "baseline_refused" in world.events(second)
