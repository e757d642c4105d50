"""`driftline compare` as a user runs it: verdicts, exit codes, the JSON of design section 9, and every way to ask."""

import json

import pytest

C_FIELDS = {
    "task", "metric", "filter", "n", "base", "head", "lost", "gained", "p_value", "p_adjusted", "interval",
    "smallest_visible_drop", "verdict",
}  # fmt: skip

RIGHT = [place % 3 != 0 for place in range(600)]


def lost(count, gained=0):
    """RIGHT with so many answers lost and gained."""
    changed = list(RIGHT)
    for place in [i for i, right in enumerate(RIGHT) if right][:count]:
        changed[place] = False
    for place in [i for i, right in enumerate(RIGHT) if not right][:gained]:
        changed[place] = True
    return changed


@pytest.mark.parametrize(
    ("head", "options", "verdict", "code"),
    [
        (lost(60), (), "regressed", 2),
        (lost(0, 60), (), "improved", 0),
        (lost(3, 2), (), "equivalent", 0),
        (lost(0), (), "equivalent", 0),
        (lost(16, 9), (), "underpowered", 0),
        (lost(16, 9), ("--strict",), "underpowered", 4),
        (lost(60), ("--margin", "0.2"), "equivalent", 0),
        (lost(3, 2), ("--margin", "0.001"), "underpowered", 0),
        (RIGHT[:500], (), "not_comparable", 3),
    ],
)
def test_verdict_and_exit_code(compared, head, options, verdict, code):
    answer, report = compared(RIGHT, head, *options)
    assert (report["verdict"], answer.returncode) == (verdict, code), answer.stdout + answer.stderr
    assert answer.stderr == ""
    assert set(report) == {"verdict", "comparisons", "problems"}
    assert all(set(each) == C_FIELDS for each in report["comparisons"])
    assert [each["filter"] for each in report["comparisons"]] == ["strict-match", "flexible-extract"]


def test_the_figures_are_those_of_the_exact_test(compared):
    """McNemar's p of 40 lost and 60 gained is 0.0569; two cells double it."""
    _, report = compared(RIGHT, lost(60, 40))
    cell = report["comparisons"][0]
    assert (cell["task"], cell["metric"], cell["n"], cell["lost"], cell["gained"]) == (
        "gsm8k",
        "exact_match",
        600,
        60,
        40,
    )
    assert cell["p_value"] == pytest.approx(0.0569, abs=5e-5)
    assert cell["p_adjusted"] == pytest.approx(2 * cell["p_value"])
    assert cell["head"] - cell["base"] == pytest.approx(-20 / 600)
    low, high = cell["interval"]
    assert low < -20 / 600 < high


def test_the_same_figures_as_the_service(lm_eval_files, tmp_path):
    """One lane of a run and two files with the same answers give the same cell."""
    import numpy as np
    from driftline.comparison import Wanted, compare
    from driftline.contracts.words import Metric
    from driftline.judge.cell import CellName, binary_cell, comparison
    from driftline.lmeval import open_output
    from driftline.statistics.holm import adjusted

    for name, right in (("base", RIGHT), ("head", lost(30, 12))):
        lm_eval_files.write(tmp_path / name, lm_eval_files.gsm8k(right))
    found = compare(open_output(tmp_path / "base"), open_output(tmp_path / "head"), Wanted(margin=0.025))
    cell = binary_cell(
        CellName("gsm8k", Metric.EXACT_MATCH, "strict-match"), np.array(RIGHT), np.array(lost(30, 12)), 0.025
    )
    assert found.report.comparisons[0] == comparison(cell, adjusted([cell.p_value] * 2, 2)[0], 2)


def test_a_drift_of_form_alone_is_said_as_such(here, lm_eval_files, tmp_path):
    """Forty answers are no longer right under strict-match while flexible-extract finds all of them."""
    for name, strict in (("base", RIGHT), ("head", lost(40))):
        scores = {"strict-match": strict, "flexible-extract": RIGHT}
        floats = {kept: {"exact_match": [float(each) for each in right]} for kept, right in scores.items()}
        lm_eval_files.write(tmp_path / name, lm_eval_files.Evaluation(floats))
    report = json.loads(here("compare", "base", "head", "--json").stdout)
    (told,) = [problem for problem in report["problems"] if problem["code"] == "format_drift"]
    assert not told["blocks"]
    assert (
        "40 are no longer right under strict-match and 0 newly are: the form moved, not what is said" in told["message"]
    )
    assert report["verdict"] == "regressed"


def test_a_drop_under_both_filters_is_no_drift_of_form(compared):
    _, report = compared(RIGHT, lost(60))
    assert "format_drift" not in {problem["code"] for problem in report["problems"]}


@pytest.mark.parametrize(("base", "head"), [([True], [True]), ([True], [False]), ([False], [True])])
def test_one_question_settles_nothing(compared, base, head):
    answer, report = compared(base, head)
    assert (report["verdict"], answer.returncode) == ("underpowered", 0)
    assert report["comparisons"][0]["p_value"] == 1.0


def test_no_question_is_never_green(compared):
    answer, report = compared([], [])
    assert (report["verdict"], answer.returncode) == ("not_comparable", 3)


def test_all_wrong_in_both_is_never_green(compared):
    answer, report = compared([False] * 600, [False] * 600)
    assert (report["verdict"], answer.returncode) == ("not_comparable", 3)
    assert {each["code"] for each in report["problems"]} == {"all_wrong"}


def test_all_right_in_both_is_equivalent_and_said(compared):
    answer, report = compared([True] * 600, [True] * 600)
    assert (report["verdict"], answer.returncode) == ("equivalent", 0)
    assert {each["code"] for each in report["problems"]} == {"all_right"}


def test_all_right_to_all_wrong_is_regressed(compared):
    answer, report = compared([True] * 600, [False] * 600)
    assert (report["verdict"], answer.returncode) == ("regressed", 2)
    assert report["comparisons"][0]["interval"][0] == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("departures", "code", "message"),
    [
        ({"shots": 4}, "shots_differ", "5 shots in base, 4 in head"),
        ({"shots": 4}, "prompt_differs", "prompt of 600 questions, first of 0"),
        ({"question": "How much is two times {}?"}, "text_differs", "the same name does not make it the same task"),
        ({"task_config": {"generation_kwargs": {"until": ["Question:", "</s>", "<|im_end|>"], "do_sample": False,
                                                "temperature": 0.0, "max_gen_toks": 64}}}, "settings_differ", "generation_kwargs"),
        ({"task_config": {"filter_list": [{"name": "strict-match", "filter": []}]}}, "filter_differs", "'strict-match'"),
        ({"task_config": {"metric_list": [{"metric": "exact_match", "aggregation": "mean", "ignore_case": True}]}},
         "metric_differs", "exact_match is defined otherwise"),
        ({"task": "gsm8k_cot"}, "task_missing", "gsm8k: head has no such task"),
        ({"task_config": {"output_type": "loglikelihood"}}, "settings_differ", "output_type"),
    ],
)  # fmt: skip
def test_what_makes_them_another_test_is_named(compared, departures, code, message):
    answer, report = compared(RIGHT, RIGHT, **departures)
    assert (report["verdict"], answer.returncode) == ("not_comparable", 3)
    assert any(each["code"] == code and each["blocks"] and message in each["message"] for each in report["problems"])


def test_a_renamed_filter_is_not_comparable_unless_left_out(here, lm_eval_files, tmp_path):
    scores = {"exact_match": [float(right) for right in RIGHT]}
    lm_eval_files.write(tmp_path / "base", lm_eval_files.gsm8k(RIGHT))
    renamed = lm_eval_files.Evaluation({"strict-match": scores, "loose": scores})
    lm_eval_files.write(tmp_path / "head", renamed)
    answer = here("compare", "base", "head", "--json")
    report = json.loads(answer.stdout)
    assert answer.returncode == 3
    assert {each["filter"] for each in report["problems"] if each["code"] == "filter_missing"} == {
        "flexible-extract",
        "loose",
    }
    assert {each["filter"]: each["verdict"] for each in report["comparisons"]} == {
        "strict-match": "equivalent", "flexible-extract": "not_comparable", "loose": "not_comparable",
    }  # fmt: skip
    assert here("compare", "base", "head", "--filter", "strict-match").returncode == 0


def test_a_drop_is_red_even_beside_what_cannot_be_compared(here, lm_eval_files, tmp_path):
    other = lm_eval_files.gsm8k(RIGHT, task="other")
    lm_eval_files.write(tmp_path / "base", lm_eval_files.gsm8k(RIGHT), other)
    lm_eval_files.write(tmp_path / "head", lm_eval_files.gsm8k(lost(60)))
    assert here("compare", "base", "head").returncode == 2
    assert here("compare", "base", "head", "--task", "other").returncode == 3


def test_versions_and_models_that_differ_are_remarks(compared):
    answer, report = compared(RIGHT, RIGHT, version="0.4.8", model="another")
    assert answer.returncode == 0
    told = " ".join(each["message"] for each in report["problems"])
    assert 'lm_eval_version: base "0.4.13", head "0.4.8"' in told
    assert 'model_name: base "a-model", head "another"' in told
    assert not any(each["blocks"] for each in report["problems"])


def test_answers_out_of_a_stale_cache_are_not_comparable(here, lm_eval_files, tmp_path):
    cached = {"use_cache": "cache"}
    lm_eval_files.write(tmp_path / "base", lm_eval_files.gsm8k(RIGHT, config=cached))
    lm_eval_files.write(tmp_path / "head", lm_eval_files.gsm8k(RIGHT, config=cached, model="another"))
    answer = here("compare", "base", "head", "--json")
    assert answer.returncode == 3
    assert {"stale_answers", "use_cache"} <= {each["code"] for each in json.loads(answer.stdout)["problems"]}
