"""Failed kernel-check cases at lines of the head commit, through the showcase to GitHub's check run."""

from datetime import UTC, datetime
from typing import Any

from driftline.contracts.impact import Touched
from driftline.contracts.report import CaseView, Headline, RunView
from driftline.contracts.words import CaseKind, RunState
from driftline_service.database.tables import Run
from driftline_service.github.annotations import A_CALL, annotations
from driftline_service.judging import live_view
from sqlalchemy import update

FOLDER = "kernels/src/mamba2_varlen"


def _case(name: str, *, message: str = "", backend: str = "torch", base: bool | None = True) -> CaseView:
    return CaseView(
        name=name, kind=CaseKind.CONTRACT, backend=backend, tolerance=1e-5, base_passed=base, head_passed=False,
        base_error=1e-6, head_error=0.5, config="", message=message,
    )  # fmt: skip


def _judged(side: Any, cases: list[CaseView], touched: list[Touched]) -> RunView:
    """The pull request's run as it would be judged with these cases."""
    (run,) = side.runs()
    with side.sessions() as session:
        view: RunView = live_view(session, run.id)
    assert view.impact is not None
    check = view.kernel_check.model_copy(update={"cases": cases})
    impact = view.impact.model_copy(update={"touched": touched})
    done = {"state": RunState.DONE, "kernel_check": check, "impact": impact, "finished_at": datetime.now(UTC),
            "headline": Headline(color="red", sentence="Cases fail.")}  # fmt: skip
    judged = view.model_copy(update=done)
    stored = {"state": RunState.DONE, "view": judged.model_dump(mode="json"), "finished_at": judged.finished_at,
              "impact": impact.model_dump(mode="json")}  # fmt: skip
    with side.sessions.begin() as session:
        session.execute(update(Run).where(Run.id == run.id).values(**stored))
    return judged


def _touched(name: str, *lines: int) -> Touched:
    return Touched(path=f"{FOLDER}/{name}", operator="x", definitions=["f"], lines=list(lines))


def test_cases_stand_where_their_message_says_or_at_what_changed(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.work()
    broken = f'File "/given/mamba2_varlen/torch_backend/ssd.py", line 31, in scan\nValueError: shapes {"x" * 5000}'
    cases = [_case("ssd/one", message=broken), _case("norm/two"), _case("norm/three", base=False)]
    view = _judged(side, cases, [_touched("torch_backend/ssd.py", 12, 40), _touched("triton_backend/ssd.py", 7)])
    side.work()
    (check,) = side.github.checks.values()
    found = check["output"]["annotations"]
    assert found == annotations(view)
    assert [(each["path"], each["start_line"], each["annotation_level"], each["title"]) for each in found] == [
        (f"{FOLDER}/torch_backend/ssd.py", 12, "failure", "2 kernel-check cases fail"),
        (f"{FOLDER}/torch_backend/ssd.py", 31, "failure", "1 kernel-check case fails"),
    ]
    assert found[0]["message"].splitlines() == [
        "norm/two (torch): error 0.5, tolerance 1e-05; passes on base",
        "norm/three (torch): error 0.5, tolerance 1e-05; fails on base too",
    ]
    assert len(found[1]["message"]) < 3001


def test_more_than_a_call_takes_are_sent_in_several_and_each_once(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.work()
    cases = [
        _case(f"case/{number}", message=f"mamba2_varlen/torch_backend/ssd.py:{number}: wrong")
        for number in range(1, 121)
    ]
    _judged(side, cases, [_touched("torch_backend/ssd.py", 1)])
    side.github.annotated = []
    side.work()
    assert [len(call) for call in side.github.annotated] == [A_CALL, A_CALL, 20]
    lines = [each["start_line"] for call in side.github.annotated for each in call]
    assert lines == list(range(1, 121))
    side.work()
    assert len(side.github.annotated) == 3


def test_what_lies_at_no_known_line_is_not_annotated(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.work()
    view = _judged(side, [_case("ssd/one", message="/etc/passwd.py:3")], [])
    side.work()
    assert "annotations" not in next(iter(side.github.checks.values()))["output"]
    assert annotations(view) == []
    assert annotations(view.model_copy(update={"state": RunState.EVALUATING})) == []
