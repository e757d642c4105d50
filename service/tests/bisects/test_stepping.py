"""A search through the real reconciler: its steps are runs, its state is rows, and it survives everything else."""

import pytest
from driftline.contracts.bisect import BisectCommit, BisectState, StepOutcome
from driftline.contracts.words import Arm, Layout, RunState
from driftline_service.bisects import stepping
from driftline_service.bisects.views import bisect_view
from driftline_service.database import job_queries, run_queries
from driftline_service.database.tables import Bisect
from driftline_service.runs.cancellation import cancel as cancel_run
from driftline_service.runs.reconciler import Reconciler
from scripted.waiting import wait_for
from scripted.worker import ScriptedWorker

QUESTIONS = 40
LOST = 12


def commit(place):
    sha = f"{place + 1:040x}"
    return BisectCommit(sha=sha, subject=f"commit {place}", kernel_path="kernels", kernel_tree=sha)


class PlantedBug(ScriptedWorker):
    """Commits from the planted one on lose answers; those that do not build fail every job."""

    planted = 6
    broken = frozenset()

    def place(self, spec):
        return int(spec.source.sha, 16) - 1

    def work(self, message):
        claim = self.claim(message)
        if claim.spec.source and self.place(claim.spec) in self.broken:
            self.fail(claim, "permanent", "does_not_import")
            return claim
        return self.complete(claim)

    def lines(self, spec):
        lines = super().lines(spec)
        if spec.kind != "evaluate" or self.place(spec) < self.planted:
            return lines
        missed = set(spec.doc_ids[:LOST])
        for line in lines:
            if line["type"] == "sample" and line["doc_id"] in missed:
                line["response"] = "so #### 41"
            elif line["type"] == "scores":
                right = sorted(set(spec.doc_ids) - missed)
                line["right"] = dict.fromkeys(line["right"], right)
                line["metrics"] = dict.fromkeys(line["metrics"], len(right) / len(spec.doc_ids))
        return lines


@pytest.fixture
def worker(world):
    return PlantedBug(world.client)


@pytest.fixture
def begin(world):
    """Begin a search over ten commits."""
    usual = world.lane()
    task = usual.task.model_copy(update={"total_questions": QUESTIONS})
    lane = usual.model_copy(update={"task": task, "questions": QUESTIONS})

    def begun(count=10):
        with world.sessions.begin() as session:
            bisect = Bisect(
                repository_id=run_queries.repository_id(session, "https://example.org/kernels.git", "main"),
                layout=Layout.MAMBA2_VARLEN, good=commit(-1).model_dump(mode="json"), margin=0.1, created_by="Ada",
                commits=[commit(place).model_dump(mode="json") for place in range(count)], lane=lane.model_dump(mode="json"),
            )  # fmt: skip
            session.add(bisect)
            session.flush()
            return bisect.id

    return begun


def seen(world, bisect_id):
    with world.sessions() as session:
        return bisect_view(session, bisect_id, "http://drift.example.org")


def work(world, worker, bisect_id, looks=60):
    """Look and work until the search is over."""
    for _ in range(looks):
        for message in world.messages():
            worker.work(message)
        if (view := seen(world, bisect_id)).state.finished:
            return view
    raise AssertionError(view)


def test_the_planted_commit_is_found(world, worker, begin):
    view = work(world, worker, begin())
    assert (view.state, view.first_bad, view.first_bad_subject) == (BisectState.FOUND, commit(6).sha, "commit 6")
    assert [(int(step.sha, 16) - 1, step.outcome.value) for step in view.steps] == [
        (9, "bad"), (4, "good"), (6, "bad"), (5, "good"),
    ]  # fmt: skip
    assert all(step.run_state is RunState.DONE and step.why for step in view.steps)
    assert "strict-match regressed by -30.0 points" in view.steps[0].why
    assert view.steps[1].why.startswith("Accuracy is equivalent to base within 10.0 points")
    assert [step.questions for step in view.steps] == [2 * QUESTIONS, QUESTIONS, QUESTIONS, QUESTIONS], (
        "good is measured once"
    )
    assert (view.questions, view.remaining, view.message) == (
        5 * QUESTIONS, 1, f"{commit(6).sha[:12]} is the first bad commit",
    )  # fmt: skip
    with world.sessions() as session:
        for step in view.steps:
            (row,) = run_queries.lanes_of(session, step.run_id)
            assert row.lane["early_stopping"] is False, "40 questions are one block, and no look"
            arms = {job.arm for job in job_queries.jobs_of(session, step.run_id) if job.pair}
            assert not arms, "a step's hit is not measured again"


def test_later_steps_of_a_longer_lane_may_stop_early(world, begin):
    with world.sessions.begin() as session:
        bisect = session.get_one(Bisect, begin())
        bisect.lane = bisect.lane | {"questions": 300, "task": bisect.lane["task"] | {"total_questions": 300}}
        for first in (True, False):
            new = stepping._run(bisect, commit(9), first=first)
            assert new.early_stopping is not first


def test_a_commit_that_does_not_build_is_skipped(world, worker, begin):
    worker.broken = frozenset({4})
    view = work(world, worker, begin())
    assert view.first_bad == commit(6).sha
    (skipped,) = [step for step in view.steps if step.outcome is StepOutcome.SKIPPED]
    assert skipped.sha == commit(4).sha
    assert "head could not be evaluated while base could" in skipped.why


def test_a_bad_commit_that_is_as_good_ends_it(world, worker, begin):
    worker.planted = 99
    view = work(world, worker, begin())
    assert (view.state, view.first_bad, len(view.steps)) == (BisectState.INCONCLUSIVE, None, 1)
    assert "is not worse than" in view.message


def test_a_reconciler_that_is_killed_at_any_step_is_followed_by_one_that_goes_on(world, worker, begin, core_engine):
    bisect_id = begin()
    for _ in range(60):
        reconciler = Reconciler(core_engine, world.broker, world.clock)
        world.reconciler.close()
        assert wait_for(reconciler.step)  # PostgreSQL takes the lock back when it notices that the last one is gone
        reconciler.close()
        for message in world.broker.take():
            worker.work(message)
        if seen(world, bisect_id).state.finished:
            break
    assert seen(world, bisect_id).first_bad == commit(6).sha


def test_cancelling_stops_the_run_of_the_open_step(world, worker, begin):
    bisect_id = begin()
    world.messages()
    with world.sessions.begin() as session:
        assert stepping.cancel(session, bisect_id, "seen enough", world.clock())
        assert not stepping.cancel(session, bisect_id, "again", world.clock())
    view = seen(world, bisect_id)
    assert (view.state, view.message) == (BisectState.CANCELLED, "seen enough")
    assert world.run(view.steps[0].run_id).state is RunState.CANCELLED
    assert world.messages() == []


def test_a_step_whose_run_a_person_cancels_is_skipped(world, worker, begin):
    bisect_id = begin()
    while len(seen(world, bisect_id).steps) < 2:
        for message in world.messages():
            worker.work(message)
    with world.sessions.begin() as session:
        cancel_run(session, seen(world, bisect_id).steps[1].run_id, "too slow")
    view = work(world, worker, bisect_id)
    assert view.steps[1].outcome is StepOutcome.SKIPPED
    assert view.first_bad == commit(6).sha


def test_a_bug_in_one_search_leaves_the_others_running(world, worker, begin, monkeypatch):
    broken, healthy = begin(), begin(3)
    worker.planted = 1
    real = stepping.next_move
    monkeypatch.setattr(
        stepping, "next_move", lambda good, commits, known: 1 / 0 if len(commits) == 10 else real(good, commits, known)
    )
    assert work(world, worker, healthy).first_bad == commit(1).sha
    view = seen(world, broken)
    assert (view.state, view.message) == (
        BisectState.INCONCLUSIVE, "internal_error: ZeroDivisionError: division by zero",
    )  # fmt: skip


def test_both_arms_are_those_that_were_frozen(world, worker, begin):
    bisect_id = begin()
    world.messages()
    run = world.run(seen(world, bisect_id).steps[0].run_id)
    assert (run.base_sha, run.head_sha) == (commit(-1).sha, commit(9).sha)
    with world.sessions() as session:
        arms = {job.arm: job.commit_sha for job in job_queries.jobs_of(session, run.id)}
    assert arms == {Arm.BASE: commit(-1).sha, Arm.HEAD: commit(9).sha}
