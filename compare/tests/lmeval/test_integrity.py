"""Every fault of one evaluation by its name, and none in one that is sound."""

import math

import pytest
from driftline.contracts.words import Arm
from driftline.lmeval import open_output
from driftline.lmeval.columns import read_columns
from driftline.lmeval.integrity import task_problems

RIGHT = [True, False, True, True, False, True]


def problems(folder, task="gsm8k"):
    output = open_output(folder).tasks[task]
    return task_problems(Arm.HEAD, output, read_columns(output))


def codes(folder):
    return {(each.code, each.blocks) for each in problems(folder)}


@pytest.mark.parametrize("version", ["0.4.8", "0.4.13"])
@pytest.mark.parametrize("right", [RIGHT, [True] * 5, [False] * 5, [True], [False, True]])
def test_a_sound_evaluation_has_none(lm_eval_files, tmp_path, version, right):
    assert problems(lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k(right, version=version))) == []


def test_scores_that_are_no_zeros_and_ones_are_recomputed_too(lm_eval_files, tmp_path):
    written = lm_eval_files.Evaluation({"none": {"rouge": [0.25, 0.5, 0.1, 0.75]}}, task="sums")
    assert problems(lm_eval_files.write(tmp_path / "out", written), "sums") == []


def cut(lines):
    return lines[:5]


def doubled(lines):
    return [*lines, lines[-1]]


def replaced(lines):
    """As many lines as there should be, but one question comes twice and another not at all."""
    lines[1] = lines[0]
    return lines


def joined(lines):
    lines[7]["doc_hash"] = "f" * 64
    return lines


def no_number(lines):
    lines[2]["exact_match"] = math.nan
    return lines


def without_score(lines):
    del lines[2]["exact_match"]
    lines[2]["metrics"] = []
    return lines


def without_any_score(lines):
    for line in lines:
        del line["exact_match"]
        line["metrics"] = []
    return lines


def edited(lines):
    lines[3]["target"] = "#### 99"
    return lines


def flipped(lines):
    lines[0]["exact_match"] = 0.0
    return lines


def other_prompts(lines):
    """A stale --cache_requests: new questions are scored against the prompts of the old ones."""
    prompts = [(line["arguments"]["gen_args_0"]["arg_0"], line["prompt_hash"]) for line in lines]
    for line, (prompt, digest) in zip(lines, prompts[1:] + prompts[:1], strict=True):
        line["arguments"]["gen_args_0"]["arg_0"], line["prompt_hash"] = prompt, digest
    return lines


def other_settings(lines):
    for line in lines:
        line["arguments"]["gen_args_0"]["arg_1"]["temperature"] = 0.7
    return lines


def renamed_filter(lines):
    for line in lines[6:]:
        line["filter"] = "loose"
    return lines


def another_metric(lines):
    for line in lines:
        line["metrics"], line["f2"] = ["exact_match", "f2"], 0.5
    return lines


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (cut, "line_count"), (cut, "missing_doc"), (doubled, "duplicate_doc"), (doubled, "line_count"),
        (replaced, "duplicate_doc"), (joined, "mixed_hashes"), (joined, "task_hash"), (no_number, "not_finite"),
        (without_score, "not_finite"), (without_any_score, "not_sampled"), (edited, "wrong_hash"),
        (flipped, "mean_mismatch"), (other_prompts, "stale_prompts"), (other_settings, "stale_arguments"),
        (renamed_filter, "filter_missing"), (another_metric, "not_reported"),
    ],
)  # fmt: skip
def test_a_fault_in_the_samples_blocks_by_its_name(lm_eval_files, tmp_path, edit, code):
    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k(RIGHT), edit=edit)
    assert (code, True) in codes(folder)


def test_the_message_names_arm_task_and_question(lm_eval_files, tmp_path):
    found = problems(lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k(RIGHT), edit=replaced))
    first = next(each for each in found if each.code == "duplicate_doc")
    assert (
        first.message == "head, gsm8k: question 0 comes 2 times under 'strict-match'; 1 questions come more than once"
    )
    assert (first.arm, first.task, first.filter) == (Arm.HEAD, "gsm8k", "strict-match")


def test_a_standard_error_that_is_not_that_of_the_samples_blocks(lm_eval_files, tmp_path):
    def wrong(results):
        results["results"]["gsm8k"]["exact_match_stderr,strict-match"] *= 1.01

    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k(RIGHT), edit_results=wrong)
    assert codes(folder) == {("stderr_mismatch", True)}


def test_samples_that_were_not_saved_block(lm_eval_files, tmp_path):
    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k(RIGHT))
    next(folder.rglob("samples_*")).unlink()
    assert codes(folder) == {("no_samples", True)}
    assert "ended with 0 all the same" in problems(folder)[0].message


def test_an_empty_samples_file_blocks(lm_eval_files, tmp_path):
    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k(RIGHT), edit=lambda lines: [])
    assert {("line_count", True), ("filter_missing", True)} <= codes(folder)


def test_no_question_at_all(lm_eval_files, tmp_path):
    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k([]))
    assert ("filter_missing", True) in codes(folder)


def test_a_limit_is_a_remark(lm_eval_files, tmp_path):
    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k(RIGHT, total=1319))
    assert codes(folder) == {("limited", False)}


def test_unsorted_samples_are_a_remark_and_several_ranks_are_none(lm_eval_files, tmp_path):
    def order(places):
        return lambda lines: [lines[start + place] for start in (0, 6) for place in places]

    def without_hash(results):
        results["task_hashes"] = {}

    ranks = lm_eval_files.write(
        tmp_path / "ranks", lm_eval_files.gsm8k(RIGHT), edit=order([0, 2, 4, 1, 3, 5]), edit_results=without_hash
    )
    assert codes(ranks) == set()
    mixed = lm_eval_files.write(
        tmp_path / "mixed", lm_eval_files.gsm8k(RIGHT), edit=order([5, 0, 1, 2, 3, 4]), edit_results=without_hash
    )
    assert codes(mixed) == {("unsorted_samples", False)}


def test_a_score_that_is_no_mean_is_a_remark(lm_eval_files, tmp_path):
    written = lm_eval_files.Evaluation(
        {"none": {"odd": [0.0, 1.0, 1.0]}}, task="t", aggregation="median", metric_values={"odd": 1.0}
    )
    found = problems(lm_eval_files.write(tmp_path / "out", written), "t")
    assert [(each.code, each.blocks) for each in found] == [("not_recomputed", False)]
    written = lm_eval_files.Evaluation(
        {"none": {"acc": [0.0, 1.0, 1.0]}}, task="t", aggregation=None, metric_values={"acc": 0.9}
    )
    found = problems(lm_eval_files.write(tmp_path / "other", written), "t")
    assert [(each.code, each.blocks) for each in found] == [("mean_mismatch", True)]
