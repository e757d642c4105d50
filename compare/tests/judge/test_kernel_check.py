"""The other result of a run: head's kernels against the oracle, and against base's."""

from driftline.contracts.words import Arm, CaseKind, FailureKind, KernelCheckResult, Verdict
from driftline.evidence import ArmFailure
from driftline.judge.run import judge


def judged(build, base, head):
    same = build.evaluation(build.answers())
    run = build.run(build.evidence(build.lane(), same, same))
    view = judge(build.replace(run, checks={Arm.BASE: base, Arm.HEAD: head}))
    assert view.verdict is Verdict.EQUIVALENT
    return view


def test_a_new_failure_is_red_whatever_the_accuracy(build):
    view = judged(build, build.checked(build.case()), build.checked(build.case(passed=False, error=8.0)))
    assert view.kernel_check.result is KernelCheckResult.FAILED
    assert view.kernel_check.failed_cases == ["carried_state/x [torch]"]
    assert view.headline.color == "red"


def test_a_failure_that_base_has_too_is_told_but_not_blamed(build):
    failing = build.checked(build.case(passed=False, error=8.0))
    view = judged(build, failing, failing)
    assert view.kernel_check.result is KernelCheckResult.FAILED
    assert view.headline.color == "neutral"


def test_a_case_outside_the_contract_decides_nothing(build):
    outside = build.case("outside/empty", passed=False, kind=CaseKind.OUTSIDE)
    view = judged(build, build.checked(build.case()), build.checked(build.case(), outside))
    assert view.kernel_check.result is KernelCheckResult.PASSED
    assert view.headline.color == "green"


def test_an_error_fifty_times_base_near_the_tolerance_is_worse_and_one_in_the_rounding_is_not(build):
    worse = judged(build, build.checked(build.case(error=1e-7)), build.checked(build.case(error=5e-6)))
    assert worse.kernel_check.result is KernelCheckResult.WORSE_THAN_BASE
    assert worse.headline.color == "neutral"
    rounding = judged(build, build.checked(build.case(error=1e-9)), build.checked(build.case(error=5e-8)))
    assert rounding.kernel_check.result is KernelCheckResult.PASSED


def test_kernels_that_do_not_import_on_head_alone_are_a_failure(build):
    failure = ArmFailure(FailureKind.PERMANENT, "kernels_do_not_import", "SyntaxError in ssd.py")
    view = judged(build, build.checked(build.case()), failure)
    assert view.kernel_check.result is KernelCheckResult.FAILED
    assert "SyntaxError in ssd.py" in view.kernel_check.reason
    assert view.headline.color == "red"


def test_a_check_that_could_not_be_made_is_never_green(build):
    lost = ArmFailure(FailureKind.LOST, "lease_expired", "the worker vanished")
    for base, head in (
        (build.checked(build.case()), lost),
        (build.checked(build.case()), None),
        (None, build.checked(build.case())),
    ):
        view = judged(build, base, head)
        assert view.kernel_check.result is KernelCheckResult.NOT_JUDGED
        assert view.headline.color == "neutral"


def test_a_backend_that_head_no_longer_offers_is_a_failure(build):
    view = judged(build, build.checked(build.case()), build.checked(build.case(), backends=("torch",)))
    assert view.kernel_check.result is KernelCheckResult.FAILED
    assert "triton" in view.kernel_check.reason
