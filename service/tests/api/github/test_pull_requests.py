"""Pull requests from webhook to comment and check run: who is measured, when, and what GitHub shows."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from driftline.contracts.report import Headline, RunView
from driftline.contracts.words import RunState, Verdict
from driftline_service.database.tables import AuditEntry, GithubPull, Run
from driftline_service.judging import live_view
from sqlalchemy import select, update

HELP_LINE = "| `/driftline run` |"


def _finish(side: Any, run_id: Any, *, color: str, verdict: Verdict) -> None:
    """Put a run where the reconciler would: done, with its view."""
    now = datetime.now(UTC)
    with side.sessions() as session:
        view: RunView = live_view(session, run_id)
    lanes = [lane.model_copy(update={"verdict": verdict}) for lane in view.lanes]
    headline = Headline(color=color, sentence=f"All in all {verdict}.")
    judged = {"state": RunState.DONE, "verdict": verdict, "lanes": lanes, "finished_at": now, "headline": headline}
    stored = view.model_copy(update=judged).model_dump(mode="json")
    with side.sessions.begin() as session:
        session.execute(update(Run).where(Run.id == run_id).values(state=RunState.DONE, view=stored, finished_at=now))


def test_a_pull_request_is_measured_shown_and_concluded(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.work()
    (run,) = side.runs()
    assert (run.head_sha, run.base_sha) == (side.commits["refactor"], side.commits["main"])
    assert run.name == f"{side.name}#7 Refactor the scan"
    assert "queued" in side.shown
    assert f"/runs/{run.id}" in side.shown
    (check,) = side.github.checks.values()
    assert (check["head_sha"], check["status"]) == (run.head_sha, "queued")
    assert "conclusion" not in check
    before = len(side.github.calls)
    side.work()
    assert len(side.github.calls) == before  # nothing new, nothing sent
    _finish(side, run.id, color="green", verdict=Verdict.EQUIVALENT)
    side.work()
    assert "All in all equivalent." in side.shown
    (check,) = side.github.checks.values()
    assert (check["status"], check["conclusion"]) == ("completed", "success")
    assert check["output"]["title"] == "All in all equivalent."


@pytest.mark.parametrize(
    ("color", "verdict", "conclusion"),
    [("red", Verdict.REGRESSED, "failure"), ("neutral", Verdict.NOT_COMPARABLE, "neutral")],
)
def test_missing_data_is_never_green(side: Any, color: str, verdict: Verdict, conclusion: str) -> None:
    side.send("pull_request", side.pull_request())
    side.work()
    _finish(side, side.runs()[0].id, color=color, verdict=verdict)
    side.work()
    assert next(iter(side.github.checks.values()))["conclusion"] == conclusion


def test_a_push_supersedes_and_closing_stops(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.work()
    side.send("pull_request", side.pull_request("synchronize", branch="triton", labels=[{"name": "driftline"}]))
    side.work()
    first, second = side.runs()
    assert (first.state, second.head_sha) == (RunState.SUPERSEDED, side.commits["triton"])
    assert side.commits["triton"][:10] in side.shown
    assert [check.get("conclusion") for check in side.github.checks.values()] == ["skipped", None]
    side.send("pull_request", side.pull_request("closed", branch="triton", state="closed"))
    side.work()
    assert side.runs()[1].state is RunState.CANCELLED
    assert [check.get("conclusion") for check in side.github.checks.values()] == ["skipped", "cancelled"]


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        ({"draft": True}, "noted"),
        ({"action": "edited"}, "noted"),
        ({"branch": "triton"}, "touches no kernel that a lane can see"),
        ({"action": "labeled"}, "another label"),
    ],
)
def test_what_needs_no_measurement_is_left_in_peace(side: Any, payload: dict[str, Any], outcome: str) -> None:
    side.send("pull_request", side.pull_request(**payload))
    side.work()
    assert side.outcomes() == [outcome]
    assert (side.runs(), side.github.comments, side.github.checks) == ([], {}, {})


@pytest.mark.parametrize("action", ["reopened", "ready_for_review", "synchronize"])
def test_whichever_way_a_head_comes_it_is_measured_once(side: Any, action: str) -> None:
    side.send("pull_request", side.pull_request("opened", draft=True))
    side.send("pull_request", side.pull_request(action))
    side.send("pull_request", side.pull_request(action))
    side.work()
    assert [run.head_sha for run in side.runs()] == [side.commits["refactor"]]
    assert side.outcomes()[2] == "measured already"


def test_a_label_asks_for_what_no_path_asked_for(side: Any) -> None:
    side.send("pull_request", side.pull_request(branch="triton"))
    label = {"name": "driftline"}
    event = side.pull_request("labeled", branch="triton", labels=[label]) | {"label": label}
    side.send("pull_request", event)
    side.work()
    assert [run.head_sha for run in side.runs()] == [side.commits["triton"]]


def test_a_fork_waits_until_that_very_commit_is_approved(side: Any) -> None:
    side.send("pull_request", side.pull_request(fork=True))
    side.work()
    assert side.runs() == []
    assert f"/driftline approve {side.commits['refactor']}" in side.shown
    side.send("issue_comment", side.comment(f"/driftline approve {side.commits['refactor']}", user="stranger"))
    side.work()
    assert side.runs() == []
    assert "`approve` is for those who may write" in side.shown
    side.send("issue_comment", side.comment(f"/driftline approve {side.commits['triton']}"))
    side.work()
    assert side.runs() == []
    assert "Look at it, and approve that one" in side.shown
    side.send("issue_comment", side.comment("/driftline run"))
    side.work()
    assert side.runs() == []
    side.send("issue_comment", side.comment(f"/driftline approve {side.commits['refactor']}"))
    side.work()
    assert [run.head_sha for run in side.runs()] == [side.commits["refactor"]]
    side.send(
        "pull_request", side.pull_request("synchronize", branch="triton", fork=True, labels=[{"name": "driftline"}])
    )
    side.work()
    assert len(side.runs()) == 1  # the approval was of the other commit
    assert f"/driftline approve {side.commits['triton']}" in side.shown


def test_commands_run_cancel_and_repeat(side: Any) -> None:
    side.send("pull_request", side.pull_request(branch="triton"))
    side.send("issue_comment", side.comment('Please look.\n\n/driftline run "canary V1" against main~1'))
    side.work()
    (run,) = side.runs()
    assert (run.created_by, run.base_sha) == ("maintainer", side.commits["main^"])
    assert "canary V1" in side.shown
    assert "canary V0" not in side.shown
    side.send("issue_comment", side.comment("/driftline cancel"))
    side.work()
    assert side.runs()[0].state is RunState.CANCELLED
    side.send("check_run", side.common() | {
        "action": "rerequested", "check_run": {"id": next(iter(side.github.checks)), "head_sha": run.head_sha},
    })  # fmt: skip
    side.work()
    assert [run.state for run in side.runs()] == [RunState.CANCELLED, RunState.QUEUED]
    with side.sessions() as session:
        noted = session.scalars(select(AuditEntry).where(AuditEntry.subject == run.id)).all()
    assert [(entry.actor, entry.action) for entry in noted] == [("maintainer", "run_submitted")]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("/driftline", HELP_LINE),
        ("/driftline destroy", "there is no command `destroy`"),
        ('/driftline run "canary V9"', "there is no lane 'canary V9'"),
        ("/driftline run against no-such-branch", "no-such-branch"),
        ("/driftline explain", "an exact McNemar test"),
        ("/driftline status", "nothing was measured yet. `/driftline run` measures the head."),
        ("/driftline cancel", "@maintainer: nothing runs for this pull request."),
    ],
)
def test_every_command_gets_an_answer(side: Any, said: str, answer: str) -> None:
    side.send("pull_request", side.pull_request(branch="triton"))
    side.send("issue_comment", side.comment(said))
    side.work()
    assert answer in side.shown
    assert side.runs() == []


@pytest.mark.parametrize(
    "more",
    [
        {"action": "edited"},
        {"issue": {"number": 7}},
        {"comment": {"id": 1, "body": "/driftline run", "user": {"login": "b", "type": "Bot"}}},
    ],
)
def test_only_new_comments_of_people_on_pull_requests_command(side: Any, more: dict[str, Any]) -> None:
    side.send("pull_request", side.pull_request(branch="triton"))
    side.send("issue_comment", side.comment("/driftline run") | more)
    side.work()
    assert side.runs() == []
    assert side.outcomes()[1] == "no command"


def test_a_push_to_main_is_measured_against_what_was_there(side: Any) -> None:
    push = {"ref": "refs/heads/main", "before": side.commits["main~2"], "after": side.commits["main^"]}
    side.send("push", side.common() | push | {"ref": "refs/heads/other"})
    side.send("push", side.common() | push | {"before": "0" * 40})
    side.work()
    first, second = side.outcomes()
    assert first == "not the main branch"
    assert second.startswith("not measured: ")


def test_an_outage_is_waited_out_and_shows_the_latest(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.github.outage = [502] * 10
    side.work()
    (run,) = side.runs()
    assert side.github.comments == {}
    with side.sessions() as session:
        pull = session.scalar(select(GithubPull).where(GithubPull.repository == side.name))
        assert (pull.tries, "502" in pull.last_error) == (1, True)
    side.github.outage = []
    _finish(side, run.id, color="red", verdict=Verdict.REGRESSED)
    side.work()
    assert side.github.comments == {}  # not yet due
    side.ahead[0] = timedelta(minutes=1)
    side.work()
    assert "All in all regressed." in side.shown
    assert next(iter(side.github.checks.values()))["conclusion"] == "failure"


def test_a_rate_limit_is_kept_to(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.github.outage = [429]
    side.work()
    with side.sessions() as session:
        pull = session.scalar(select(GithubPull).where(GithubPull.repository == side.name))
        assert pull.last_error.endswith("rate limit")
        assert timedelta(seconds=80) < pull.next_try_at - datetime.now(UTC) <= timedelta(seconds=90)
    assert len(side.github.calls) == 1  # and nothing was sent in the meantime
    side.ahead[0] = timedelta(seconds=91)
    side.work()
    assert "queued" in side.shown


def test_a_comment_that_was_deleted_is_written_again(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.work()
    side.github.comments.clear()
    _finish(side, side.runs()[0].id, color="green", verdict=Verdict.EQUIVALENT)
    side.work()
    assert "All in all equivalent." in side.shown


def test_a_limit_of_one_installation_is_kept_to_by_all_its_pull_requests(side: Any) -> None:
    first = side.pull_request()
    side.send("pull_request", first)
    side.send("pull_request", first | {"pull_request": first["pull_request"] | {"number": 8}})
    side.github.outage = [429]
    side.work()
    assert len(side.runs()) == 2
    assert len(side.github.calls) == 1
    side.ahead[0] = timedelta(seconds=91)
    side.work()
    assert {path.split("/")[5] for _, path in side.github.calls if "/issues/" in path} >= {"7", "8"}


def test_a_bug_in_one_delivery_is_named_and_leaves_the_others(side: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side.desk._measuring, "main", lambda *_: 1 / 0)
    push = {"ref": "refs/heads/main", "before": "a" * 40, "after": "b" * 40}
    side.send("push", side.common() | push)
    side.send("pull_request", side.pull_request())
    side.work()
    assert side.outcomes()[0] == "ZeroDivisionError: division by zero"
    assert len(side.runs()) == 1
