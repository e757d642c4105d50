"""`driftline compare` on metrics that are not 0/1: a permutation test, a direction, and a margin of their own."""

import json

import pytest


@pytest.mark.parametrize(
    ("move", "higher", "verdict"),
    [(-0.1, True, "regressed"), (0.1, True, "improved"), (0.1, False, "regressed"), (-0.1, False, "improved"),
     (0.1, None, "regressed"), (0.0, True, "equivalent"), (0.0, None, "equivalent")],
)  # fmt: skip
def test_other_metrics_by_permutation_in_their_own_direction(here, lm_eval_files, tmp_path, move, higher, verdict):
    values = [0.3 + 0.4 * (place % 7) / 7 for place in range(200)]
    for name, moved in (("base", 0.0), ("head", move)):
        scores = {"none": {"rouge": [each + moved * (1 + place % 3) / 2 for place, each in enumerate(values)]}}
        written = lm_eval_files.Evaluation(scores, task="sums", higher_is_better=higher)
        lm_eval_files.write(tmp_path / name, written)
    report = json.loads(here("compare", "base", "head", "--json").stdout)
    cell = report["comparisons"][0]
    assert (cell["verdict"], cell["metric"], cell["lost"], cell["gained"]) == (verdict, "rouge", None, None)
    named = {each["code"] for each in report["problems"]}
    assert "permutation" in named
    assert ("no_direction" in named) is (higher is None)


def test_few_questions_without_a_move_are_not_taken_for_certainty(here, lm_eval_files, tmp_path):
    for name in ("base", "head"):
        lm_eval_files.write(tmp_path / name, lm_eval_files.Evaluation({"none": {"rouge": [0.5] * 5}}, task="sums"))
    report = json.loads(here("compare", "base", "head", "--json").stdout)
    assert report["verdict"] == "underpowered"
    assert report["comparisons"][0]["interval"][1] == pytest.approx(1 - 0.05 ** (1 / 5))


def test_a_metric_that_is_no_share_needs_its_own_margin(here, lm_eval_files, tmp_path):
    for name, move in (("base", 0.0), ("head", 0.05)):
        scores = {"none": {"bleu": [30 + place % 11 + move * (-1) ** place for place in range(200)]}}
        lm_eval_files.write(tmp_path / name, lm_eval_files.Evaluation(scores, task="sums"))
    answer = here("compare", "base", "head", "--json")
    assert json.loads(answer.stdout)["verdict"] == "underpowered"
    assert "no_margin" in answer.stdout
    answer = here("compare", "base", "head", "--json", "--metric-margin", "bleu=0.5")
    assert json.loads(answer.stdout)["verdict"] == "equivalent"


def test_a_task_whose_metrics_have_no_question_score_is_never_green(here, lm_eval_files, tmp_path):
    for name in ("base", "head"):
        written = lm_eval_files.Evaluation({"none": {"f1": [[1, 0], [1, 1]]}}, task="choice", metric_values={"f1": 0.5})
        lm_eval_files.write(tmp_path / name, written)
    answer = here("compare", "base", "head", "--json")
    assert answer.returncode == 3
    assert {"no_question_score", "nothing_to_compare"} <= {
        each["code"] for each in json.loads(answer.stdout)["problems"]
    }
