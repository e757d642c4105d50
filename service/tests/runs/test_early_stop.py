"""Lanes that stop early, through the real HTTP and PostgreSQL: the second arm decides, both are told, the rest is forgotten.

Workers answer as they are scripted, in blocks of 100; that a real child heeds what it is told is proved in worker/tests.
"""

import pytest
from driftline.contracts.words import AttemptState, Confirmed, JobState, RunState, Verdict
from driftline.judge.run import judge
from driftline_service.database import attempt_queries, result_queries, run_queries
from driftline_service.database.tables import Attempt, Job, OutboxMessage, Run, RunLane
from driftline_service.judging import load_evidence
from sqlalchemy import select, update

QUESTIONS = 300
BLOCK = 100
ON = {"early_stopping": True}


class Arm:
    """One claimed evaluation that reports block by block."""

    def __init__(self, world, message):
        self.world, self.claim = world, world.worker.claim(message)
        self.doc_ids, self.batches = self.claim.spec.doc_ids, 0
        self.send([world.worker.lines(self.claim.spec)[0]])

    def send(self, lines):
        self.batches += 1
        answer = self.world.worker.report(self.claim, lines, self.batches - 1)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def blocks(self, first, last, wrong=()):
        """Answer the questions of these places; the last directive."""
        answer = {"action": "continue"}
        for start in range(first, last, BLOCK):
            places = range(start, min(start + BLOCK, last))
            lines = [
                self.world.sample(self.doc_ids[rank], rank, "#### 41" if rank in wrong else "so #### 42")
                for rank in places
            ]
            answer = self.send(lines)
        return answer

    def heartbeat(self):
        path = f"/attempts/{self.claim.attempt_id}/heartbeat"
        return self.world.worker.post(path, self.claim.attempt_token).json()

    def finish(self, asked, wrong=()):
        """Force all questions, score those that were asked, end."""
        self.send([self.world.forced(doc_id) for doc_id in self.doc_ids])
        right = [doc_id for rank, doc_id in enumerate(self.doc_ids[:asked]) if rank not in wrong]
        scores = self.world.scores(right)
        scores["metrics"] = dict.fromkeys(scores["metrics"], len(right) / asked)
        self.send([scores])
        return self.world.worker.finish(self.claim, self.batches)


@pytest.fixture
def lane(world):
    usual = world.lane()
    task = usual.task.model_copy(update={"total_questions": 400})
    return usual.model_copy(update={"task": task, "questions": QUESTIONS} | ON)


@pytest.fixture
def arms(world, lane):
    """Base and head of a run on one lane that may stop early."""
    messages = world.evaluating(lanes=(lane,))
    found = {world.job(message[1]).arm.value: Arm(world, message) for message in messages}
    return found["base"], found["head"]


def stored(world, arm):
    with world.sessions() as session:
        attempt = session.get_one(Attempt, arm.claim.attempt_id)
        samples = result_queries.samples_of(session, attempt.id)
        return attempt, samples, attempt_queries.forced_doc_ids(session, attempt.id)


def stopped_lane(world, arm):
    with world.sessions() as session:
        return session.scalars(select(RunLane).where(RunLane.run_id == arm.claim.spec.run_id)).one()


def view_of(world, arm):
    with world.sessions() as session:
        return judge(load_evidence(session, arm.claim.spec.run_id))


def test_side_by_side_the_slower_arm_decides_and_both_are_told(world, arms):
    base, head = arms
    assert base.blocks(0, 300) == {"action": "continue", "reason": ""}
    assert head.blocks(0, 100)["action"] == "continue"
    told = head.blocks(100, 200)
    assert (told["action"], told["after"]) == ("stop", 200)
    assert told["reason"].startswith(
        "stopped after 200 of 300 questions: a difference of 2.5 points or more is ruled out"
    )
    assert base.heartbeat() == head.heartbeat() == told
    assert base.finish(300).json()["action"] == head.finish(200).json()["action"] == "continue"
    whole, part = stored(world, base), stored(world, head)
    assert (whole[0].asked, len(whole[1]), part[0].asked, len(part[1])) == (None, 300, 200, 200)
    assert len(part[2]) == QUESTIONS
    view = view_of(world, head)
    assert view.verdict is Verdict.EQUIVALENT
    assert [cell.n for cell in view.lanes[0].comparisons] == [200, 200, QUESTIONS]
    assert view.lanes[0].reasons[0].startswith(told["reason"])
    assert [arm.questions for arm in view.lanes[0].health] == [300, 200]
    assert "lane_stopped" in world.events(head.claim.spec.run_id)


def test_a_drop_stops_as_soon_as_it_is_no_chance(world, arms):
    base, head = arms
    base.blocks(0, 300)
    wrong = set(range(0, 100, 6))
    told = head.blocks(0, 100, wrong)
    assert (told["action"], told["after"]) == ("stop", 100)
    head.finish(100, wrong)
    base.finish(300)
    assert view_of(world, head).verdict is Verdict.REGRESSED


def test_what_was_answered_beyond_is_forgotten(world, arms):
    """Told in the middle of a block, a child ends with more answers than count."""
    base, head = arms
    base.blocks(0, 300)
    head.blocks(0, 200)
    head.blocks(200, 237)
    assert head.finish(200).json()["action"] == "continue"
    _, samples, _ = stored(world, head)
    assert [sample.rank for sample in samples] == list(range(200))


def test_a_word_that_comes_too_late_changes_no_verdict(world, arms):
    """Both arms are asked all: their evaluations are whole, and the first look decides all the same."""
    base, head = arms
    base.blocks(0, 300)
    assert head.blocks(0, 300)["after"] == 200
    head.finish(300)
    base.finish(300)
    assert stored(world, head)[0].asked is None
    view = view_of(world, head)
    assert [cell.n for cell in view.lanes[0].comparisons] == [200, 200, QUESTIONS]
    assert view.lanes[0].reasons[0].startswith("stopped after 200 of 300")


def test_nobody_who_was_not_told_may_stop(world, arms):
    base, head = arms
    base.blocks(0, 100)
    head.blocks(0, 100)
    refused = head.finish(100).json()
    assert refused["action"] == "stop"
    assert "of 300 questions 200 have no sample" in refused["reason"]
    assert world.job(head.claim.spec.job_id).state is JobState.QUEUED


def test_a_worker_that_dies_after_the_word_is_followed_by_one_that_hears_it_at_once(world, arms):
    base, head = arms
    base.blocks(0, 300)
    base.finish(300)
    head.blocks(0, 200)
    with world.sessions.begin() as session:
        attempt = session.get_one(Attempt, head.claim.attempt_id)
        attempt.lease_until = attempt.created_at
    world.messages()
    assert stored(world, head)[0].state is AttemptState.LOST
    with world.sessions.begin() as session:
        session.execute(update(Job).where(Job.id == head.claim.spec.job_id).values(not_before=None))
        session.execute(update(OutboxMessage).values(not_before=attempt.created_at))
    [message] = world.messages()
    again = Arm(world, message)
    assert again.heartbeat()["after"] == 200
    again.blocks(0, 200)
    again.finish(200)
    assert view_of(world, again).verdict is Verdict.EQUIVALENT


def test_arms_that_may_not_be_compared_decide_nothing(world, lane):
    messages = world.evaluating(lanes=(lane,))
    base = Arm(world, messages[0])
    world.worker.must_match = {"model": "canary@2"}
    head = Arm(world, messages[1])
    base.blocks(0, 200)
    assert head.blocks(0, 200)["action"] == "continue"
    assert stopped_lane(world, head).stopped_after is None


def test_a_lane_without_early_stopping_asks_all(world, lane):
    messages = world.evaluating(lanes=(lane.model_copy(update={"early_stopping": False}),))
    base, head = (Arm(world, message) for message in messages)
    base.blocks(0, 200)
    assert head.blocks(0, 200)["action"] == "continue"


def test_a_stopped_evaluation_is_no_baseline_and_a_whole_one_is(world, arms, lane):
    base, head = arms
    base.blocks(0, 200)
    head.blocks(0, 200)
    base.finish(200)
    head.finish(200)
    world.messages()
    assert world.run(head.claim.spec.run_id).state is RunState.DONE
    jobs = [world.job(message[1]) for message in world.evaluating(lanes=(lane,))]
    assert [job.arm.value for job in jobs if job.kind == "evaluate"] == ["base", "head"]


def test_a_reused_base_lets_head_stop_at_its_own_first_decision(world, arms, lane):
    base, head = arms
    base.blocks(0, 300)
    base.finish(300)
    head.blocks(0, 200)
    head.finish(200)
    world.messages()
    [message] = [sent for sent in world.evaluating(lanes=(lane,)) if world.job(sent[1]).kind == "evaluate"]
    assert world.job(message[1]).arm == "head"
    assert Arm(world, message).blocks(0, 200)["after"] == 200


def test_a_run_says_whether_its_lanes_may_stop(world, lane):
    plain = lane.model_copy(update={"early_stopping": False})
    cases = [
        ({"lanes": (plain,), "early_stopping": True}, True),
        ({"lanes": (lane,), "early_stopping": False}, False),
        ({"lanes": (lane,)}, True),
        ({"lanes": (lane,), "measure_noise": True}, False),
        ({"lanes": (lane,), "questions": 100}, False),
        ({"lanes": (lane,), "questions": 101}, True),
    ]
    for changes, expected in cases:
        run_id = world.submit(**changes)
        with world.sessions() as session:
            [row] = run_queries.lanes_of(session, run_id)
            assert row.lane["early_stopping"] is expected
            assert session.get_one(Run, run_id).margin == 0.025


def test_stopping_early_is_no_part_of_what_a_lane_measures(world, lane):
    from driftline_service.runs.planner import hash_lane

    assert hash_lane(lane) == hash_lane(lane.model_copy(update={"early_stopping": False}))


def test_a_fresh_pair_is_asked_what_the_first_was_asked(world, arms):
    """The hit's questions are those of the first look; the fresh pair stops there without a look of its own."""
    base, head = arms
    wrong = set(range(0, 100, 6))
    for arm, missed in ((base, ()), (head, wrong)):
        arm.blocks(0, 100, missed)
    for arm, missed in ((base, ()), (head, wrong)):
        arm.finish(100, missed)
    assert world.messages() == [], "judged, and suspected"
    fresh = {world.job(message[1]).arm.value: Arm(world, message) for message in world.messages()}
    for arm, missed in ((fresh["base"], ()), (fresh["head"], wrong)):
        assert arm.heartbeat()["after"] == 100
        arm.blocks(0, 100, missed)
        assert arm.finish(100, missed).json()["action"] == "continue"
    assert stored(world, fresh["head"])[0].asked == 100
    world.messages()
    view = view_of(world, head)
    assert (world.run(head.claim.spec.run_id).state, view.lanes[0].verdict) == (RunState.DONE, Verdict.REGRESSED)
    assert view.lanes[0].confirmed is Confirmed.YES
    assert [cell.n for cell in view.lanes[0].comparisons] == [100, 100, QUESTIONS]
