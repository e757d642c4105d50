"""The repository's own tests, judged: new failures, known ones, what was skipped, removed or made easier."""

from driftline.contracts.channel import KernelTest, Tolerance
from driftline.contracts.words import Arm, FailureKind, SuiteOutcome, SuiteResult
from driftline.evidence import ArmFailure, SuiteEvidence
from driftline.judge.run import judge
from driftline.judge.suite import loosened
from driftline.report.markdown import markdown
from driftline.report.public import run_report


def suite(*, gpu="H100", tolerances=(), **outcomes):
    tests = tuple(
        KernelTest(node_id=name, outcome=SuiteOutcome(word), seconds=0.1, message=f"{name} is {word}")
        for name, word in outcomes.items()
    )
    return SuiteEvidence(tests, tuple(tolerances), gpu_type=gpu, environment_id="e")


def tolerance(value, *, line=3, name="atol", scope="test_a", file="tests/test_a.py"):
    return Tolerance(file=file, line=line, scope=scope, name=name, value=value)


def judged(build, base, head):
    right = build.evaluation(build.answers())
    lane = build.evidence(lane=build.lane(), base=right, head=right, identical="byte-identical")
    suites = {Arm.BASE: base, Arm.HEAD: head}
    return judge(build.replace(build.run(lane), suites=suites))


def names(tests):
    return [test.node_id for test in tests]


def test_nothing_is_said_where_no_tests_were_asked_for(build):
    view = judged(build, suite(a="passed"), suite(a="passed"))
    without = judge(build.replace(build.run(), suites=None))
    assert without.suite is None
    assert view.headline.sentence.endswith("The repository's own tests passed.")
    assert view.headline.color == "green"
    assert run_report(view).suite.result is SuiteResult.PASSED


def test_every_difference_has_its_own_list(build):
    base = suite(a="passed", b="failed", c="failed", d="passed", e="passed", f="skipped", g="passed")
    head = suite(a="crashed", b="timed_out", c="passed", d="skipped", f="skipped", g="xfailed", new="failed")
    view = judged(build, base, head)
    found = view.suite
    assert names(found.new_failures) == ["a", "new"]
    assert (names(found.known_failures), names(found.fixed)) == (["b"], ["c"])
    assert (names(found.newly_skipped), names(found.removed), found.added) == (["d"], ["e"], 1)
    assert (found.result, view.headline.color) == (SuiteResult.NEW_FAILURES, "red")
    assert "Of the repository's own tests 2 fail on head and not on base." in view.headline.sentence
    assert run_report(view).suite.new_failures == ["a", "new"]
    text = markdown(view)
    assert "### The repository's own tests: new failures" in text
    assert "|a|passed|crashed|a is crashed|" in text
    assert "1 fail on both arms, so not for this commit: b" in text
    assert "1 removed: on base and no more on head: e" in text


def test_what_base_fails_too_is_no_fault_of_head(build):
    view = judged(build, suite(a="failed", b="passed"), suite(a="error", b="passed"))
    assert (view.suite.result, view.headline.color) == (SuiteResult.KNOWN_FAILURES, "green")
    assert "1 test of the repository's own failed on both arms." in view.headline.sentence


def test_new_failures_elsewhere_than_base_ran_are_shown_and_not_red(build):
    view = judged(build, suite(a="passed", gpu="H100"), suite(a="failed", gpu="A100"))
    assert (view.suite.result, view.headline.color) == (SuiteResult.NEW_FAILURES, "green")
    assert "base ran on H100, head on A100: it may be the place" in view.headline.sentence


def test_missing_tests_are_never_green_and_blamed_on_head_only_where_base_ran(build):
    broken = ArmFailure(FailureKind.PERMANENT, "tests_do_not_start", "conftest raises\nTraceback")
    lost = ArmFailure(FailureKind.PERMANENT, "environment_missing", "no vLLM here")
    bare = ArmFailure(FailureKind.PERMANENT, "pytest_missing", "no pytest here")
    good = suite(a="passed")
    cases = [
        (good, broken, "red", "head's tests did not run, base's did: conftest raises (tests_do_not_start)"),
        (good, lost, "neutral", "no vLLM here (environment_missing)"),
        (good, bare, "neutral", "no pytest here (pytest_missing)"),
        (broken, broken, "neutral", "head: conftest raises"),
        (broken, good, "neutral", "base: conftest raises"),
        (None, good, "neutral", "base's did not run yet"),
        (good, suite(a="passed", b="not_run"), "neutral", "1 test did not run on head"),
    ]
    for base, head, color, said in cases:
        view = judged(build, base, head)
        assert (view.suite.result, view.headline.color) == (SuiteResult.NOT_JUDGED, color), said
        assert said in view.headline.sentence


def test_a_loosened_tolerance_names_file_line_and_both_values(build):
    base = suite(a="passed", tolerances=[tolerance(1e-3), tolerance(1e-4, name="rtol")])
    head = suite(a="passed", tolerances=[tolerance(1e-1, line=5), tolerance(1e-5, name="rtol")])
    view = judged(build, base, head)
    [found] = view.suite.loosened
    assert (found.file, found.line, found.base_line, found.base_value, found.head_value) == (
        "tests/test_a.py", 5, 3, 1e-3, 1e-1,
    )  # fmt: skip
    assert view.headline.color == "green"
    assert "The commit loosened 1 tolerance in them." in view.headline.sentence
    text = markdown(view).replace("\\", "")
    assert "tolerance loosened: tests/test_a.py:5 in test_a: atol 0.001 → 0.1" in text


def test_tolerances_pair_in_order_or_by_the_largest():
    assert loosened([tolerance(1.0), tolerance(2.0)], [tolerance(2.0), tolerance(1.0)])[0].head_value == 2.0
    assert loosened([tolerance(1.0), tolerance(2.0)], [tolerance(1.5)]) == []
    assert loosened([tolerance(1.0)], [tolerance(0.5), tolerance(3.0)])[0].head_value == 3.0
    assert loosened([], [tolerance(3.0)]) == loosened([tolerance(3.0)], []) == []
    assert loosened([tolerance(1.0, scope="x")], [tolerance(3.0, scope="y")]) == []
