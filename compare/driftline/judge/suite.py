"""The repository's own kernel tests: what fails on head beside what fails on base, and what the commit made easier to pass."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from driftline.contracts.channel import KernelTest, Tolerance
from driftline.contracts.report import LoosenedTolerance, SuiteTestView, SuiteView
from driftline.contracts.words import Arm, SuiteOutcome, SuiteResult
from driftline.evidence import ArmFailure, RunEvidence, SuiteEvidence
from driftline.judge.blame import in_words, is_heads_fault

SuiteArm = SuiteEvidence | ArmFailure | None


@dataclass(frozen=True, slots=True)
class SuiteJudgement:
    """The view, and whether head fails what base passes on the same GPU type and environment: only that is red."""

    view: SuiteView
    new_failures: bool


def judge_suite(evidence: RunEvidence) -> SuiteJudgement | None:
    """Both arms' tests side by side; None where none were asked for."""
    if evidence.suites is None:
        return None
    base, head = evidence.suites.get(Arm.BASE), evidence.suites.get(Arm.HEAD)
    if isinstance(head, SuiteEvidence) and isinstance(base, SuiteEvidence):
        return _compared(evidence, base, head)
    if isinstance(head, ArmFailure) and isinstance(base, SuiteEvidence):
        reason, lost = f"head's tests did not run, base's did: {in_words(head)}", is_heads_fault(head)
        return SuiteJudgement(_view(SuiteResult.NOT_JUDGED, reason, base, None), new_failures=lost)
    missing = [_why_missing(arm, one) for arm, one in ((Arm.HEAD, head), (Arm.BASE, base)) if _is_missing(one)]
    found = head if isinstance(head, SuiteEvidence) else None
    return SuiteJudgement(_view(SuiteResult.NOT_JUDGED, "; ".join(missing), None, found), new_failures=False)


def told(suite: SuiteJudgement | None) -> str:
    """What the headline says of the tests; empty where none were asked for."""
    if suite is None:
        return ""
    view = suite.view
    loosened = f" The commit loosened {count_of(len(view.loosened), 'tolerance')} in them." if view.loosened else ""
    match view.result:
        case SuiteResult.PASSED:
            return f" The repository's own tests passed.{loosened}"
        case SuiteResult.NEW_FAILURES:
            return f" Of the repository's own tests {view.reason}.{loosened}"
        case SuiteResult.KNOWN_FAILURES:
            return (
                f" {count_of(len(view.known_failures), 'test')} of the repository's own failed on both arms.{loosened}"
            )
        case SuiteResult.NOT_JUDGED:
            return f" The repository's own tests were not judged: {view.reason}.{loosened}"


def count_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _compared(evidence: RunEvidence, base: SuiteEvidence, head: SuiteEvidence) -> SuiteJudgement:
    view = _view(SuiteResult.PASSED, "", base, head).model_copy(update={"by_gpu": list(evidence.suite_by_gpu)})
    alike = (base.gpu_type, base.environment_id) == (head.gpu_type, head.environment_id)
    if view.new_failures:
        count = len(view.new_failures)
        reason = f"{count} {'fails' if count == 1 else 'fail'} on head and not on base"
        if not alike:
            reason += (
                f" (base ran on {base.gpu_type or 'a CPU'}, head on {head.gpu_type or 'a CPU'}: it may be the place)"
            )
        changed = {"result": SuiteResult.NEW_FAILURES, "reason": reason}
        return SuiteJudgement(view.model_copy(update=changed), new_failures=alike)
    if (left_out := [test for test in head.tests if test.outcome is SuiteOutcome.NOT_RUN]) and not view.known_failures:
        changed = {"result": SuiteResult.NOT_JUDGED, "reason": f"{count_of(len(left_out), 'test')} did not run on head"}
        return SuiteJudgement(view.model_copy(update=changed), new_failures=False)
    result = SuiteResult.KNOWN_FAILURES if view.known_failures else SuiteResult.PASSED
    return SuiteJudgement(view.model_copy(update={"result": result}), new_failures=False)


def _view(result: SuiteResult, reason: str, base: SuiteEvidence | None, head: SuiteEvidence | None) -> SuiteView:
    before, after = _by_id(base), _by_id(head)
    tests = [
        _test_view(key, before.get(key), after.get(key)) for key in dict.fromkeys([*after, *before])
    ] if base and head else []  # fmt: skip
    return SuiteView(
        result=result, reason=reason, base_gpu=base.gpu_type if base else None, head_gpu=head.gpu_type if head else None,
        base_counts=_counts(before.values()), head_counts=_counts(after.values()),
        new_failures=[one for one in tests if one.head and one.head.bad and not (one.base and one.base.bad)],
        known_failures=[one for one in tests if one.head and one.head.bad and one.base and one.base.bad],
        fixed=[one for one in tests if one.head and one.head.good and one.base and one.base.bad],
        newly_skipped=[one for one in tests if one.head is SuiteOutcome.SKIPPED and one.base and _ran(one.base)],
        removed=[one for one in tests if one.head is None],
        added=sum(one.base is None for one in tests),
        loosened=loosened(base.tolerances, head.tolerances) if base and head else [],
    )  # fmt: skip


def _ran(outcome: SuiteOutcome) -> bool:
    return outcome.bad or outcome.good


def _by_id(arm: SuiteEvidence | None) -> Mapping[str, KernelTest]:
    return {test.node_id: test for test in arm.tests} if arm else {}


def _counts(tests: Iterable[KernelTest]) -> dict[SuiteOutcome, int]:
    return dict(Counter(test.outcome for test in tests))


def _test_view(node_id: str, base: KernelTest | None, head: KernelTest | None) -> SuiteTestView:
    known = head or base
    return SuiteTestView(
        node_id=node_id, base=base.outcome if base else None, head=head.outcome if head else None,
        message=known.message if known else "",
    )  # fmt: skip


def _is_missing(arm: SuiteArm) -> bool:
    return not isinstance(arm, SuiteEvidence)


def _why_missing(arm: Arm, one: SuiteArm) -> str:
    return f"{arm.value}: {in_words(one)}" if isinstance(one, ArmFailure) else f"{arm.value}'s did not run yet"


def loosened(base: Sequence[Tolerance], head: Sequence[Tolerance]) -> list[LoosenedTolerance]:
    """Tolerances of the same file, function and name that are larger on head.

    Where a function has equally many on both arms they are paired in order; else the largest of each arm, for nothing
    tells which became which.
    """
    before, after = _by_place(base), _by_place(head)
    found = []
    for place in after.keys() & before.keys():
        ours, theirs = after[place], before[place]
        if len(ours) != len(theirs):
            ours, theirs = [max(ours, key=_value)], [max(theirs, key=_value)]
        found += [
            LoosenedTolerance(
                file=new.file, line=new.line, scope=new.scope, name=new.name, base_value=old.value,
                head_value=new.value, base_line=old.line,
            )
            for new, old in zip(ours, theirs, strict=True)
            if new.value > old.value
        ]  # fmt: skip
    return sorted(found, key=lambda one: (one.file, one.line, one.name))


def _by_place(tolerances: Iterable[Tolerance]) -> dict[tuple[str, str, str], list[Tolerance]]:
    places: dict[tuple[str, str, str], list[Tolerance]] = {}
    for one in tolerances:
        places.setdefault((one.file, one.scope, one.name), []).append(one)
    return places


def _value(one: Tolerance) -> float:
    return one.value
