"""One request, one transaction; what is planned follows from the lanes alone."""

import pytest
from driftline.contracts.words import Arm, JobKind, JobState, RunState
from driftline_service.database.job_queries import jobs_of
from driftline_service.database.run_queries import lanes_of
from driftline_service.database.tables import OutboxMessage, Run
from driftline_service.runs.planner import hash_lane
from driftline_service.runs.submission import submit
from sqlalchemy import func, select


def count(world, table):
    with world.sessions() as session:
        return session.execute(select(func.count()).select_from(table)).scalar_one()


def evaluations(world, run_id):
    with world.sessions() as session:
        return [job for job in jobs_of(session, run_id) if job.kind is JobKind.EVALUATE]


def test_everything_or_nothing(world):
    with pytest.raises(RuntimeError, match="disk full"), world.sessions.begin() as session:
        submit(session, world.new_run())
        raise RuntimeError("disk full")
    assert count(world, Run) == count(world, OutboxMessage) == 0
    run_id = world.submit()
    assert count(world, OutboxMessage) == 2  # both builds
    assert world.events(run_id) == ["run_submitted"]


def test_the_same_key_is_the_same_run(world):
    first = world.submit(idempotency_key="delivery-1")
    assert world.submit(idempotency_key="delivery-1") == first
    assert world.submit(idempotency_key="delivery-2") != first
    assert count(world, Run) == 2
    assert world.submit() != world.submit()  # no key is no key in common


def test_identical_trees_cost_no_evaluation(world):
    base = world.new_run().base
    head = world.new_run(head=base).head
    run_id = world.submit(head=head)
    assert evaluations(world, run_id) == []
    with world.sessions() as session:
        assert "byte-identical" in lanes_of(session, run_id)[0].identical
    assert world.run_until_done(run_id).state is RunState.DONE


def test_measuring_noise_evaluates_identical_trees(world):
    base = world.new_run().base
    run_id = world.submit(head=base, measure_noise=True)
    assert {job.arm for job in evaluations(world, run_id)} == set(Arm)
    with world.sessions() as session:
        assert lanes_of(session, run_id)[0].identical is None


def test_an_unreachable_lane_is_not_evaluated_and_says_why(world):
    why = "only triton_backend changed; this lane runs torch"
    run_id = world.submit(lanes=(world.lane("a V0"), world.lane("b V1")), unreachable={"a V0": why})
    assert {job.lane_name for job in evaluations(world, run_id)} == {"b V1"}
    with world.sessions() as session:
        assert [lane.unreachable for lane in lanes_of(session, run_id)] == [why, None]


def test_questions_override_every_lane(world):
    claim = world.worker.claim(world.evaluating(questions=5)[0])
    assert len(claim.spec.doc_ids) == len(set(claim.spec.doc_ids)) == 5


@pytest.mark.parametrize("changes", [{"questions": 11}, {"questions": 0}, {"lanes": ()}], ids=["11", "0", "no lane"])
def test_what_cannot_be_measured_is_refused(world, changes):
    with pytest.raises(ValueError, match="lane"):
        world.submit(**changes)


def test_a_lane_twice_is_refused(world):
    with pytest.raises(ValueError, match="each once"):
        world.submit(lanes=(world.lane(), world.lane()))


def test_a_lanes_name_is_a_label(world):
    same, other = world.lane("x V1"), world.lane("x V1", questions=4)
    assert hash_lane(same) == hash_lane(world.lane("y V1"))
    assert hash_lane(same) != hash_lane(other)


def test_gpu_lanes_have_a_queue_of_their_own(world):
    lane = world.lane().model_copy(update={"gpu_type": "H200"})
    assert {queue for queue, _, _ in world.evaluating(lanes=(lane,))} == {"gpu-H200"}


def test_all_jobs_are_planned_at_once_for_the_page(world):
    with world.sessions() as session:
        jobs = jobs_of(session, world.submit())
    assert sorted((job.kind.value, job.arm.value) for job in jobs) == sorted(
        (kind, arm) for kind in ("build", "check", "evaluate") for arm in ("base", "head")
    )
    assert {job.state for job in jobs} == {JobState.QUEUED}
