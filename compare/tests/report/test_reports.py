"""The two shapes of a finished run, from one view."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from driftline.contracts.channel import KernelBuild
from driftline.contracts.words import Arm, RunState
from driftline.evidence import RunEvidence
from driftline.judge import judge
from driftline.report import UnfinishedRunError, markdown, run_report


def evidence(state: RunState = RunState.DONE, **given: object) -> RunEvidence:
    values: dict[str, object] = {
        "run_id": UUID(int=1), "name": "Change | refactor", "repository": "repo", "base_sha": "b" * 40,
        "head_sha": "a" * 40, "base_subject": "base", "head_subject": "head", "state": state,
        "created_at": datetime(2026, 1, 1, tzinfo=UTC), "finished_at": None, "margin": 0.025, "lanes": (),
    }  # fmt: skip
    return RunEvidence(**(values | given))  # type: ignore[arg-type]


def built(registers: int | None, **given: object) -> KernelBuild:
    values = {"kernel": "scan", "config": "block 64", "arch": "sm_90", "registers": registers, "compiled": True} | given
    return KernelBuild.model_validate(values)


def test_a_run_without_a_verdict_has_no_report_and_is_named() -> None:
    view = judge(evidence(RunState.EVALUATING)).model_copy(update={"verdict": None})
    with pytest.raises(UnfinishedRunError, match=r"Change \| refactor is evaluating"):
        run_report(view)


def test_a_run_under_way_still_has_its_markdown() -> None:
    text = markdown(judge(evidence(RunState.EVALUATING)))
    assert text.startswith("## Change \\| refactor: ")
    assert "not judged" in text.lower() or "not_judged" in text


def test_report_names_full_commits_and_both_results() -> None:
    report = run_report(judge(evidence()))
    assert (report.base, report.head) == ("b" * 40, "a" * 40)
    assert (report.verdict, report.kernel_check.result, report.lanes) == ("not_comparable", "not_judged", [])


def test_changed_builds_are_listed_and_unchanged_ones_counted() -> None:
    same = built(40, arch="sm_80")
    failed = built(None, kernel="conv", compiled=False, error="no `tl.dot` | here")
    builds = {Arm.BASE: (built(64), same, built(32, kernel="conv")), Arm.HEAD: (built(96), same, failed)}
    text = markdown(judge(evidence(builds=builds)))
    assert "### Build: 2 of 3 kernels changed" in text
    assert "|scan|block 64|sm_90|64 → 96|–|–||" in text
    assert "|conv|block 64|sm_90|32 → –|–|–|no \\`tl.dot\\` \\| here|" in text
    assert "sm_80" not in text
