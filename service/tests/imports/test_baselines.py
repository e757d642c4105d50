"""An import stands for a base arm only if an admin says so, only where it fits, and only as long as he says so."""

from datetime import UTC, datetime

import pytest
from driftline.contracts.imports import DecisionRequest, PromoteRequest
from driftline.contracts.words import Arm, JobKind, JobState, RunState, Verdict
from driftline.judge.run import judge
from driftline_service.database import import_queries, worker_queries
from driftline_service.database.job_queries import jobs_of
from driftline_service.database.tables import ImportKind
from driftline_service.imports import promotion
from driftline_service.imports.reported import NewScore
from driftline_service.intake.refusal import Refusal
from driftline_service.judging import load_evidence
from driftline_service.lanes import Lanes

from .conftest import new_sample

DECISION = DecisionRequest(decided_by="Root", reason="checked by hand")


def lanes(world):
    return Lanes((world.lane(),), ("canary V1",))


def promote(world, import_id, **more):
    asked = PromoteRequest(**DECISION.model_dump(), **({"environment_id": "env-1"} | more))
    with world.sessions.begin() as session:
        return promotion.promote(session, import_id, asked, lanes(world), datetime.now(UTC))


def demote(world, import_id):
    with world.sessions.begin() as session:
        return promotion.demote(session, import_id, DECISION)


def base_evaluation(world, run_id):
    with world.sessions() as session:
        jobs = jobs_of(session, run_id)
    found = [job for job in jobs if job.arm is Arm.BASE and job.kind is JobKind.EVALUATE]
    return max(found, key=lambda job: job.generation)


def with_a_worker(world):
    """A worker of environment env-1 was seen, as after any earlier run."""
    with world.sessions.begin() as session:
        worker_queries.remember_worker(session, world.worker.facts, world.clock())


def judged(world, run_id):
    with world.sessions() as session:
        return judge(load_evidence(session, run_id)).lanes[0]


def test_nothing_is_a_baseline_unless_promoted(world, reported):
    with_a_worker(world)
    reported()
    run_id = world.submit()
    assert world.run_until_done(run_id).state is RunState.DONE
    assert base_evaluation(world, run_id).import_id is None


def test_a_promoted_import_stands_for_base(world, reported):
    with_a_worker(world)
    import_id = reported().import_id
    promote(world, import_id)
    run_id = world.submit()
    done = world.run_until_done(run_id)
    assert done.state is RunState.DONE
    job = base_evaluation(world, run_id)
    assert (job.import_id, job.adopted_attempt_id, job.state) == (import_id, None, JobState.SUCCEEDED)
    assert "job_imported" in world.events(run_id)
    lane = judged(world, run_id)
    assert lane.comparisons[0].n == 3, "the lane's questions, of the ten that were reported"
    assert [cell.verdict for cell in lane.comparisons[-1:]] == [Verdict.NOT_COMPARABLE], "no log-probabilities"
    assert lane.verdict is Verdict.NOT_COMPARABLE, "an import alone never makes a run green"
    assert any(f"import {import_id}, reported by Ada; Root promoted it" in reason for reason in lane.reasons)
    base = lane.health[0]
    assert (base.imported_from, base.length_stops, base.left_truncated) == (import_id, None, None)
    with world.sessions() as session:
        kinds = [event.kind for event in import_queries.import_events(session, import_id)]
    assert kinds == ["import_reported", "import_promoted", "import_used"]


def test_a_drop_against_an_import_is_seen(world, reported):
    """24 of 30 questions lost: p is 2 ** -23, and no log-probability is needed to call it."""
    with_a_worker(world)
    task = world.lane().task.model_copy(update={"total_questions": 30})
    big = world.lane(questions=10).model_copy(update={"task": task, "questions": 30})
    samples = tuple(new_sample(doc_id) for doc_id in range(30))
    import_id = reported(samples=lambda: iter(samples)).import_id
    asked = PromoteRequest(**DECISION.model_dump(), environment_id="env-1")
    with world.sessions.begin() as session:
        promotion.promote(session, import_id, asked, Lanes((big,), ()), datetime.now(UTC))
    said = world.worker.lines

    def lines(spec):
        told = said(spec)
        for line in told:
            if line["type"] == "sample" and line["doc_id"] < 24:
                line["response"] = "so #### 41"
            if line["type"] == "scores":
                line["right"] = {name: list(range(24, 30)) for name in line["right"]}
                line["metrics"] = dict.fromkeys(line["metrics"], 0.2)
        return told

    world.worker.lines = lines
    run_id = world.submit(lanes=(big,))
    world.run_until_done(run_id)
    lane = judged(world, run_id)
    assert lane.verdict is Verdict.REGRESSED
    strict = next(cell for cell in lane.comparisons if cell.filter == "strict-match")
    assert (strict.n, strict.lost, strict.gained, strict.p_value) == (30, 24, 0, 2**-23)


def test_what_the_service_measured_itself_comes_first(world, reported):
    world.run_until_done(world.submit())
    promote(world, reported().import_id)
    head = type(world.new_run().head)("fix", "f" * 40, "a fix", "kernels", "f" * 40)
    run_id = world.submit(head=head)
    world.run_until_done(run_id)
    job = base_evaluation(world, run_id)
    assert (job.import_id, job.reused_from_job_id is not None) == (None, True)


def test_a_demoted_import_stands_for_nothing_any_more(world, reported):
    with_a_worker(world)
    import_id = reported().import_id
    promote(world, import_id)
    demote(world, import_id)
    run_id = world.submit()
    world.run_until_done(run_id)
    assert base_evaluation(world, run_id).import_id is None
    with world.sessions() as session:
        events = import_queries.import_events(session, import_id)
    assert [event.kind for event in events] == ["import_reported", "import_promoted", "import_demoted"]
    assert events[1].message == "Root made it a baseline in environment env-1: checked by hand"


def test_a_run_that_is_under_way_measures_base_after_a_demotion(world, reported):
    with_a_worker(world)
    import_id = reported().import_id
    promote(world, import_id)
    run_id = world.submit()
    messages = world.reach(run_id, RunState.EVALUATING)
    assert base_evaluation(world, run_id).import_id == import_id
    demote(world, import_id)
    for message in messages:
        world.worker.work(message)
    world.run_until_done(run_id)
    job = base_evaluation(world, run_id)
    assert (job.generation, job.import_id, job.state) == (1, None, JobState.SUCCEEDED)


@pytest.mark.parametrize("how", ["environment", "fact"])
def test_base_is_measured_when_head_was_measured_otherwise(world, reported, how):
    """Head's worker is known only afterwards; and what the files state is held against what head says."""
    with_a_worker(world)
    facts = {"task": "gsm8k_canary", "engine": "hf", "num_fewshot": "3", "model": "canary@0"}
    promote(world, reported(facts=facts if how == "fact" else {}).import_id)
    run_id = world.submit()
    messages = world.reach(run_id, RunState.EVALUATING)
    assert base_evaluation(world, run_id).import_id is not None
    newer = type(world.worker)(world.client, name="w2", environment_id="env-2")
    for message in messages:
        (newer if how == "environment" else world.worker).work(message)
    world.run_until_done(run_id, newer)
    assert base_evaluation(world, run_id).import_id is None
    with world.sessions() as session:
        evidence = load_evidence(session, run_id)
    refused = [event.message for event in evidence.events if event.kind == "baseline_refused"]
    assert len(refused) == 1
    assert ("environment_id" if how == "environment" else "model") in refused[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": ImportKind.FIGURES, "samples": tuple}, "no_samples"),
        ({"repository": None}, "no_repository"),
        ({"commit_sha": "b" * 12}, "abbreviated_commit"),
        ({"lane_name": "gone"}, "unknown_lane"),
        ({"samples": lambda: iter([new_sample(1)])}, "questions_missing"),
        ({"facts": {"engine": "vllm"}}, "lane_differs"),
    ],
)
def test_what_cannot_be_a_baseline_is_refused_by_name(world, reported, changes, reason):
    scores = (NewScore("exact_match", "strict-match", 1.0, None, 10),)
    import_id = reported(scores=scores, **changes).import_id
    with pytest.raises(Refusal) as refused:
        promote(world, import_id)
    assert refused.value.reason == reason


def test_decisions_are_made_once(world, reported):
    first, second = reported().import_id, reported(content_hash="d" * 64).import_id
    with pytest.raises(Refusal) as refused:
        promote(world, first, environment_id=None)
    assert refused.value.reason == "unknown_environment"
    with pytest.raises(Refusal) as refused:
        demote(world, first)
    assert refused.value.reason == "not_promoted"
    promoted = promote(world, first)
    assert promote(world, first).promoted_at == promoted.promoted_at
    for import_id, reason in ((first, "already_promoted"), (second, "another_baseline")):
        with pytest.raises(Refusal) as refused:
            promote(world, import_id, **({"environment_id": "env-9"} if import_id == first else {}))
        assert refused.value.reason == reason
    with pytest.raises(Refusal) as refused, world.sessions.begin() as session:
        promotion.withdraw(session, first, DECISION, datetime.now(UTC))
    assert refused.value.reason == "is_baseline"


def test_a_withdrawn_import_makes_room_for_the_right_one(world, reported):
    wrong = reported(commit_sha="e" * 40).import_id
    with world.sessions.begin() as session:
        promotion.withdraw(session, wrong, DECISION, datetime.now(UTC))
    with pytest.raises(Refusal) as refused:
        promote(world, wrong)
    assert refused.value.reason == "withdrawn"
    right = reported()
    assert right.created
    assert right.import_id != wrong
