"""The first of a run's two results: do head's kernels compute what they must, and base's as well (design 6)."""

import math
from dataclasses import dataclass
from typing import Final

from driftline.contracts.channel import Case
from driftline.contracts.report import CaseView, KernelCheckView
from driftline.contracts.words import Arm, CaseKind, FailureKind, KernelCheckResult
from driftline.evidence import ArmFailure, CheckEvidence, RunEvidence
from driftline.judge.blame import in_words, is_heads_fault

WORSE_RATIO: Final = 10.0
"""Head's error over base's, inside the tolerance, from which on it is named: reordered sums give 2 to 4."""

WORSE_SHARE: Final = 0.1
"""Share of the tolerance below which an error is rounding whatever its ratio."""

CheckArm = CheckEvidence | ArmFailure | None
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class KernelJudgement:
    """The view, and whether head fails what base passes: only that makes a run red."""

    view: KernelCheckView
    new_failures: bool


def judge_kernels(evidence: RunEvidence) -> KernelJudgement:
    """Both arms' cases side by side, and the result."""
    base, head = evidence.checks.get(Arm.BASE), evidence.checks.get(Arm.HEAD)
    if isinstance(head, CheckEvidence):
        return _judge(base, head)
    if isinstance(head, ArmFailure) and isinstance(base, CheckEvidence) and _lost_by_head(head):
        reason = f"head's kernels could not be checked, base's could: {in_words(head)}"
        return KernelJudgement(_view(KernelCheckResult.FAILED, reason, base, None), new_failures=True)
    missing = in_words(head) if isinstance(head, ArmFailure) else "head is not checked yet"
    return KernelJudgement(_view(KernelCheckResult.NOT_JUDGED, missing, base, None), new_failures=False)


def _judge(base: CheckArm, head: CheckEvidence) -> KernelJudgement:
    failing = {_key(case) for case in head.cases if _fails(case)}
    known = {_key(case) for case in base.cases if _fails(case)} if isinstance(base, CheckEvidence) else set()
    if head.summary is None or not any(case.kind is CaseKind.CONTRACT for case in head.cases):
        reason = "no case of the contract was checked on head"
        return KernelJudgement(_view(KernelCheckResult.NOT_JUDGED, reason, base, head), new_failures=False)
    lost = _lost_backends(base, head)
    if lost:
        reason = f"head no longer offers the backend {', '.join(lost)}"
        return KernelJudgement(_view(KernelCheckResult.FAILED, reason, base, head), new_failures=True)
    if failing and not isinstance(base, CheckEvidence):
        reason = f"{_cases_fail(len(failing))} on head; {_why_missing(base)}"
        return KernelJudgement(_view(KernelCheckResult.FAILED, reason, base, head), new_failures=False)
    if failing - known:
        count = len(failing - known)
        reason = f"{_cases_fail(count)} on head and not on base"
        return KernelJudgement(_view(KernelCheckResult.FAILED, reason, base, head), new_failures=True)
    if failing:
        reason = "every case that fails on head fails on base too"
        return KernelJudgement(_view(KernelCheckResult.FAILED, reason, base, head), new_failures=False)
    if not isinstance(base, CheckEvidence):
        reason = f"head passes; {_why_missing(base)}"
        return KernelJudgement(_view(KernelCheckResult.NOT_JUDGED, reason, base, head), new_failures=False)
    unjudged = _unjudged_operators(base, head)
    if unjudged:
        reason = f"base was judged on what head was not: {unjudged}"
        return KernelJudgement(_view(KernelCheckResult.NOT_JUDGED, reason, base, head), new_failures=False)
    worse = [view for view in _cases(base, head) if _is_worse(view)]
    if worse:
        reason = f"{len(worse)} cases pass with an error more than {WORSE_RATIO:.0f} times base's"
        return KernelJudgement(_view(KernelCheckResult.WORSE_THAN_BASE, reason, base, head), new_failures=False)
    return KernelJudgement(_view(KernelCheckResult.PASSED, "", base, head), new_failures=False)


def _lost_by_head(head: ArmFailure) -> bool:
    return head.kind is FailureKind.UNSUPPORTED or is_heads_fault(head)


def _cases_fail(count: int) -> str:
    return f"{count} {'case fails' if count == 1 else 'cases fail'}"


def _why_missing(base: ArmFailure | None) -> str:
    return "base is not checked yet" if base is None else f"base could not be checked: {in_words(base)}"


def _view(result: KernelCheckResult, reason: str, base: CheckArm, head: CheckEvidence | None) -> KernelCheckView:
    one = base if isinstance(base, CheckEvidence) else None
    device = next((arm.summary.device for arm in (head, one) if arm is not None and arm.summary is not None), None)
    failed = [f"{case.name} [{case.backend}]" for case in (head.cases if head else ()) if _fails(case)]
    return KernelCheckView(result=result, reason=reason, device=device, failed_cases=failed, cases=_cases(one, head))


def _cases(base: CheckEvidence | None, head: CheckEvidence | None) -> list[CaseView]:
    before = {_key(case): case for case in base.cases} if base else {}
    after = {_key(case): case for case in head.cases} if head else {}
    return [_case_view(before.get(key), after.get(key)) for key in dict.fromkeys([*after, *before])]


def _case_view(base: Case | None, head: Case | None) -> CaseView:
    known = head or base
    assert known is not None  # noqa: S101 - the key came from one of the two
    base_error, head_error = base.max_abs_err if base else None, head.max_abs_err if head else None
    return CaseView(
        name=known.name, kind=known.kind, backend=known.backend, tolerance=known.tolerance,
        base_passed=base.passed if base else None, head_passed=head.passed if head else None,
        base_error=base_error, head_error=head_error,
        ratio=_ratio(base_error, head_error),
        config=known.config, message=known.message,
    )  # fmt: skip


def _ratio(base_error: float | None, head_error: float | None) -> float | None:
    if head_error is None or not base_error:
        return None
    ratio = head_error / base_error
    return ratio if math.isfinite(ratio) else None


def _is_worse(view: CaseView) -> bool:
    if view.ratio is None or view.head_error is None or view.kind is not CaseKind.CONTRACT:
        return False
    return view.ratio > WORSE_RATIO and view.head_error > WORSE_SHARE * view.tolerance


def _fails(case: Case) -> bool:
    return case.kind is CaseKind.CONTRACT and not case.passed


def _key(case: Case) -> Key:
    return case.name, case.backend


def _unjudged_operators(base: CheckEvidence, head: CheckEvidence) -> str:
    """Subjects (the first part of a case's name) that decide on base and not on head, with what head says of them."""
    lost = {case.name.split("/")[0] for case in base.cases if case.kind is CaseKind.CONTRACT}
    lost -= {case.name.split("/")[0] for case in head.cases if case.kind is CaseKind.CONTRACT}
    said = {case.name.split("/")[0]: case.message for case in head.cases if case.message}
    return "; ".join(f"{subject} ({said[subject]})" if subject in said else subject for subject in sorted(lost))


def _lost_backends(base: CheckArm, head: CheckEvidence) -> list[str]:
    if not isinstance(base, CheckEvidence) or base.summary is None or head.summary is None:
        return []
    return sorted(set(base.summary.backends) - set(head.summary.backends))
