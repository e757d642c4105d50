"""What GitHub leaves null or out: a person whose account is gone, a draft of old, the sender of a push."""

from typing import Any

from driftline.contracts.words import RunState

GHOST: dict[str, Any] = {"user": None}


def test_a_pull_request_of_an_account_that_is_gone_is_measured_and_stopped(side: Any) -> None:
    side.send("pull_request", side.pull_request(draft=None, **GHOST))
    side.work()
    assert [run.state for run in side.runs()] == [RunState.QUEUED]
    side.send("pull_request", side.pull_request("closed", state="closed", **GHOST))
    side.work()
    assert [run.state for run in side.runs()] == [RunState.CANCELLED]


def test_nobody_s_comment_commands_nothing(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.send(
        "issue_comment", side.comment("/driftline cancel", comment={"id": 1, "body": "/driftline cancel"} | GHOST)
    )
    side.send("issue_comment", side.comment("", comment={"id": 2, "body": None, "user": {"login": "a", "type": None}}))
    side.work()
    assert side.outcomes()[1:] == ["no command", "no command"]
    assert [run.state for run in side.runs()] == [RunState.QUEUED]


def test_a_push_of_nobody_is_read(side: Any) -> None:
    push = {"ref": "refs/heads/other", "before": "a" * 40, "after": "b" * 40, "sender": None}
    side.send("push", side.common() | push)
    side.work()
    assert side.outcomes() == ["not the main branch"]


def test_repositories_without_a_name_or_without_any_stop_nothing(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    removed = {"action": "removed", "installation": {"id": side.installation}, "repositories_added": None}
    side.send("installation_repositories", removed | {"repositories_removed": [{"id": 1, "full_name": None}]})
    side.installed("new_permissions_accepted", repositories=None)
    side.work()
    assert [run.state for run in side.runs()] == [RunState.QUEUED]


def test_a_webhook_of_the_repository_is_told_apart_from_the_app_s(side: Any) -> None:
    said = side.pull_request()
    del said["installation"]
    side.send("pull_request", said)
    side.send("pull_request", side.pull_request() | {"installation": {"id": "none"}})
    side.work()
    own, odd = side.outcomes()
    assert own == "not the App's: it names no installation, as webhooks of a repository or organization do"
    assert odd.startswith("not understood: 1 fields, first ('installation', 'id')")
