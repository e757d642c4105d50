"""A kernel check with something missing: never green, and never blamed on head without base's word."""

import pytest
from driftline.contracts.words import Arm, CaseKind, FailureKind, KernelCheckResult
from driftline.evidence import ArmFailure
from driftline.judge.run import judge

LOST = ArmFailure(FailureKind.LOST, "lease_expired", "the worker went away")


def judged(build, base, head):
    same = build.evaluation(build.answers())
    run = build.run(build.evidence(build.lane(), same, same))
    return judge(build.replace(run, checks={Arm.BASE: base, Arm.HEAD: head}))


@pytest.mark.parametrize(("base", "why"), [(None, "base is not checked yet"), (LOST, "the worker went away")])
def test_a_failure_on_head_without_a_check_of_base_is_told_and_not_red(build, base, why):
    view = judged(build, base, build.checked(build.case(passed=False, error=1.0)))
    assert view.kernel_check.result is KernelCheckResult.FAILED
    assert view.kernel_check.failed_cases == ["carried_state/x [torch]"]
    assert why in view.kernel_check.reason
    assert view.headline.color == "neutral"


@pytest.mark.parametrize(
    ("attempts", "same_worker", "result", "color"),
    [
        (2, True, KernelCheckResult.FAILED, "red"),
        (1, True, KernelCheckResult.NOT_JUDGED, "neutral"),
        (2, False, KernelCheckResult.NOT_JUDGED, "neutral"),
    ],
)
def test_a_check_that_keeps_hanging_where_bases_ended_is_heads_fault(build, attempts, same_worker, result, color):
    head = ArmFailure(
        FailureKind.TRANSIENT,
        "child_silent",
        "no line for 60 s\nand what it printed",
        attempts=attempts,
        same_worker_as_base=same_worker,
    )
    view = judged(build, build.checked(build.case()), head)
    assert (view.kernel_check.result, view.headline.color) == (result, color)
    assert "no line for 60 s (child_silent)" in view.kernel_check.reason


@pytest.mark.parametrize("kinds", [(), (CaseKind.OUTSIDE,)])
def test_a_check_without_a_case_of_the_contract_is_not_judged(build, kinds):
    cases = [build.case(kind=kind) for kind in kinds]
    view = judged(build, build.checked(build.case()), build.checked(*cases))
    assert view.kernel_check.result is KernelCheckResult.NOT_JUDGED
    assert view.headline.color == "neutral"


def test_an_operator_that_only_base_could_be_judged_on_is_never_green(build):
    norm = build.case("gated_norm/groups")
    base = build.checked(build.case(), norm)
    told = norm.model_copy(
        update={"kind": CaseKind.OUTSIDE, "passed": False, "message": "not judged: this commit has no norm"}
    )
    for head, said in (
        (build.checked(build.case(), told), "gated_norm (not judged: this commit has no norm)"),
        (build.checked(build.case()), "gated_norm"),
    ):
        view = judged(build, base, head)
        assert (view.kernel_check.result, view.headline.color) == (KernelCheckResult.NOT_JUDGED, "neutral")
        assert view.kernel_check.reason == f"base was judged on what head was not: {said}"
    assert judged(build, build.checked(build.case(), told), build.checked(build.case())).headline.color == "green"


def test_a_case_that_base_does_not_have_and_head_fails_is_red(build):
    head = build.checked(build.case(), build.case("tile/new", passed=False, error=None))
    view = judged(build, build.checked(build.case()), head)
    assert view.headline.color == "red"
    new = next(case for case in view.kernel_check.cases if case.name == "tile/new")
    assert (new.base_passed, new.head_passed, new.ratio) == (None, False, None)


def test_an_error_that_base_does_not_have_or_hardly_has_gives_no_ratio(build):
    for base_error in (0.0, 5e-324, None):
        view = judged(build, build.checked(build.case(error=base_error)), build.checked(build.case(error=1e-6)))
        assert view.kernel_check.cases[0].ratio is None
        assert view.kernel_check.result is KernelCheckResult.PASSED
