"""From a commit to a verdict through every real part, each killed on the way, and again on Redis with the same report."""

import os

from example_run import QUESTIONS, finished, report_of, submit
from stacks import production


def test_the_bug_is_found_where_it_is(embedded_outcome):
    view, report, _, _ = embedded_outcome
    lanes = {lane["mode"]: lane for lane in report["lanes"]}
    assert report["verdict"] == "regressed"
    assert lanes["V1"]["verdict"] == "regressed"
    assert lanes["V0"]["verdict"] != "regressed"
    by_metric = {cell["metric"]: cell for cell in lanes["V0"]["comparisons"]}
    assert (by_metric["exact_match"]["lost"], by_metric["exact_match"]["gained"]) == (0, 0)
    assert by_metric["logprob"]["verdict"] == "equivalent"
    assert report["kernel_check"]["result"] == "failed"
    assert report["kernel_check"]["failed_cases"]
    assert all(name.startswith("carried_state/") for name in report["kernel_check"]["failed_cases"])
    assert view["headline"]["color"] == "red"


def test_every_case_of_both_backends_passes_on_base(embedded_outcome):
    view, _, _, _ = embedded_outcome
    check = view["kernel_check"]
    assert check["device"] == "cpu"
    assert {case["backend"] for case in check["cases"]} == {"torch", "triton"}
    assert [(case["name"], case["backend"]) for case in check["cases"] if not case["base_passed"]] == []
    assert len({(case["name"], case["backend"]) for case in check["cases"]}) == len(check["cases"])
    assert sum("/tile_" in case["name"] for case in check["cases"]) > 20
    assert all(case["base_error"] is not None for case in check["cases"])


def test_each_question_counts_once_though_everything_was_killed(embedded_outcome):
    view, _, _, _ = embedded_outcome
    evaluations = [job for job in view["jobs"] if job["kind"] == "evaluate"]
    assert max(job["attempts"] for job in evaluations) > 1
    for lane in view["lanes"]:
        for arm in lane["health"]:
            assert (arm["questions"], arm["missing"], arm["duplicates"]) == (QUESTIONS, 0, 0)
        assert {cell["n"] for cell in lane["comparisons"]} == {QUESTIONS}


def test_changed_answers_and_the_page_tell_the_same(embedded_outcome):
    view, _, changed, page = embedded_outcome
    counted = {lane["name"]: lane["changed_answers"] for lane in view["lanes"]}
    assert counted["canary V0"] == 0
    assert len([one for one in changed["samples"] if one["lane"] == "canary V1"]) == counted["canary V1"] > 0
    assert view["headline"]["sentence"].split(".")[0] in page


def test_every_kernel_compiles_for_three_architectures(embedded_outcome):
    view, _, _, _ = embedded_outcome
    assert {build["arch"] for build in view["builds"]} == {"sm_80", "sm_90", "sm_100"}
    assert all(build["head_error"] == "" and build["head_registers"] > 0 for build in view["builds"])


def test_redis_and_separate_processes_give_the_same_report(embedded_outcome, example, tmp_path):
    _, expected, _, _ = embedded_outcome
    database, broker = os.environ["DRIFTLINE_TEST_DATABASE_URL"], os.environ["DRIFTLINE_TEST_REDIS_URL"]
    with production(database, f"{broker.rsplit('/', 1)[0]}/9", tmp_path) as server:
        run_id = submit(server, example)
        finished(server, run_id)
        assert report_of(server, run_id) == expected
