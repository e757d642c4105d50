"""The two shapes of a finished run, from one view."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from driftline.contracts.channel import KernelBuild
from driftline.contracts.report import JobView
from driftline.contracts.words import Arm, RunState
from driftline.evidence import RunEvidence
from driftline.judge.run import judge
from driftline.report.markdown import markdown
from driftline.report.public import UnfinishedRunError, run_report


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
    assert "- 1 kernel does not compile on head: no \\`tl.dot\\` \\| here" in text
    assert "|conv|" not in text, "the message says it all"
    assert "sm_80" not in text


def test_one_broken_import_is_told_once_before_any_table() -> None:
    names = [f"kernel {number}" for number in range(45)]
    base = tuple(built(64, kernel=name) for name in names)
    lost = tuple(built(None, kernel=f"{name} lost", compiled=False, error="No module named 'x'") for name in names[:21])
    blocks = markdown(judge(evidence(builds={Arm.BASE: base, Arm.HEAD: (*lost, built(96, kernel="kernel 0"))}))).split(
        "\n\n"
    )
    place = blocks.index("### Build: 66 of 66 kernels changed")
    assert blocks[place + 1].splitlines() == [
        "- 21 kernels do not compile on head: No module named 'x'",
        "- 44 of base's kernels are not on head",
    ]
    assert [row for row in blocks[place + 2].splitlines() if "64 → 96" in row] == [
        "|kernel 0|block 64|sm_90|64 → 96|–|–||"
    ]
    assert len(blocks[place + 2].splitlines()) == 3


def test_a_head_that_was_not_built_is_told_in_a_line() -> None:
    job = JobView.model_validate({
        "job_id": UUID(int=2), "kind": "build", "arm": "head", "lane": None, "state": "failed", "attempts": 1,
        "message": "mamba2_varlen does not import: No module named 'x'", "phase": None, "done": None, "total": None,
        "started_at": None, "finished_at": None,
    })  # fmt: skip
    text = markdown(judge(evidence(builds={Arm.BASE: (built(64),), Arm.HEAD: None}, jobs=(job,))))
    assert "- head was not built: mamba2_varlen does not import" in text
    assert "64 → –" not in text
