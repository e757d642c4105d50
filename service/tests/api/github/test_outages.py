"""GitHub in trouble, in random order: what it did without saying so is not done twice, and in the end it shows the present."""

from datetime import timedelta
from random import Random

import pytest
from driftline_service.github import client

from .conftest import Side

TROUBLES = (500, 502, 503, 403, 429, "lost", "late")
LONGEST_BACK_OFF = timedelta(minutes=20)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.4)


@pytest.mark.parametrize("seed", range(4))
def test_one_comment_and_one_check_run_whatever_github_answers(side: Side, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    side.send("pull_request", side.pull_request())
    side.github.outage = random.choices(TROUBLES, k=random.randint(1, 6))
    for _ in range(8):
        side.work()
        side.ahead[0] += LONGEST_BACK_OFF
    assert side.github.outage == []
    (run,) = side.runs()
    (check,) = side.github.checks.values()
    assert (check["external_id"], check["head_sha"]) == (str(run.id), side.commits["refactor"])
    assert str(run.id) in side.shown
    side.github.outage = random.choices(TROUBLES, k=2)
    side.send("issue_comment", side.comment("/driftline cancel"))
    for _ in range(5):
        side.work()
        side.ahead[0] += LONGEST_BACK_OFF
    (check,) = side.github.checks.values()
    assert check["conclusion"] == "cancelled"
    assert "cancelled" in side.shown
