"""The exit code of `submit --watch` is the verdict."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from driftline.cli.watch import exit_code, not_judged
from driftline.contracts.report import EventView, Headline, KernelCheckView, RunView
from driftline.contracts.words import KernelCheckResult, RunState, Verdict

PASSED = KernelCheckView(result=KernelCheckResult.PASSED, reason="", device="cpu", failed_cases=[], cases=[])


def _view(color: str, verdict: Verdict | None, check: KernelCheckResult) -> RunView:
    headline = Headline.model_validate({"color": color, "sentence": ""})
    return RunView(
        run_id=UUID(int=1), name="n", repository="r", base="a" * 40, head="b" * 40, base_subject="", head_subject="",
        state=RunState.DONE, created_at=datetime.now(UTC), finished_at=None, margin=0.025, method_version="1",
        inputs_hash="", verdict=verdict, headline=headline, kernel_check=PASSED.model_copy(update={"result": check}),
        lanes=[], builds=[], jobs=[], events=[],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("color", "verdict", "check", "code"),
    [
        ("green", Verdict.EQUIVALENT, KernelCheckResult.PASSED, 0),
        ("green", Verdict.UNDERPOWERED, KernelCheckResult.PASSED, 0),
        ("neutral", Verdict.UNDERPOWERED, KernelCheckResult.PASSED, 0),
        ("green", Verdict.IMPROVED, KernelCheckResult.WORSE_THAN_BASE, 0),
        ("red", Verdict.REGRESSED, KernelCheckResult.PASSED, 2),
        ("red", Verdict.EQUIVALENT, KernelCheckResult.FAILED, 2),
        ("red", Verdict.NOT_COMPARABLE, KernelCheckResult.PASSED, 2),
        ("neutral", Verdict.NOT_COMPARABLE, KernelCheckResult.PASSED, 3),
        ("neutral", Verdict.EQUIVALENT, KernelCheckResult.NOT_JUDGED, 3),
        ("grey", None, KernelCheckResult.PASSED, 3),
    ],
)
def test_exit_code(color: str, verdict: Verdict | None, check: KernelCheckResult, code: int) -> None:
    assert exit_code(_view(color, verdict, check)) == code


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELLED, RunState.SUPERSEDED])
def test_a_run_without_a_judgement_says_why(state: RunState) -> None:
    told = EventView(at=datetime.now(UTC), kind="run_failed", message="unknown_commit: the branch was deleted")
    view = _view("neutral", None, KernelCheckResult.NOT_JUDGED).model_copy(update={"state": state, "events": [told]})
    error = not_judged(view)
    assert (error.exit_code, str(error)) == (
        3, f"run {view.run_id} is {state}: unknown_commit: the branch was deleted"
    )  # fmt: skip
