"""Which files belong to one evaluation, and what is read of them, for both ages of lm-eval's format."""

import json
import shutil

import pytest
from driftline.lmeval import BadOutputError, open_output

RIGHT = [True, True, False, True]


@pytest.mark.parametrize("version", ["0.4.8", "0.4.13"])
@pytest.mark.parametrize("zipped", [False, True])
def test_an_evaluation_is_read_as_written(lm_eval_files, tmp_path, version, zipped):
    written = lm_eval_files.gsm8k(RIGHT, version=version, total=1319)
    output = open_output(lm_eval_files.write(tmp_path / "out", written, zipped=zipped))
    task = output.tasks["gsm8k"]
    assert output.results.lm_eval_version == version
    assert (task.results.shots, task.results.total, task.results.effective, task.results.version) == (5, 1319, 4, "3.0")
    assert task.results.filters == ("strict-match", "flexible-extract")
    assert task.results.values["exact_match", "strict-match"] == 0.75
    assert task.results.stderrs["exact_match", "strict-match"] == pytest.approx(0.25)
    samples = list(task.samples())
    assert [(each.doc_id, each.filter) for each in samples[3:5]] == [(3, "strict-match"), (0, "flexible-extract")]
    assert [each.values["exact_match"] for each in samples] == [1.0, 1.0, 0.0, 1.0] * 2
    assert samples[1].response == " It is 2.\n#### 2"
    assert samples[1].extracted == "2"
    assert samples[1].prompt.endswith("Question: How much is 1 and one?\nAnswer:")
    assert samples[1].request_arguments == {
        "until": ["Question:", "</s>", "<|im_end|>"],
        "do_sample": False,
        "temperature": 0.0,
    }
    again = list(task.samples_at([samples[5].offset, samples[2].offset]))
    assert again == [samples[2], samples[5]]


def test_every_way_to_name_it_gives_the_same(lm_eval_files, tmp_path):
    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k(RIGHT))
    stamp = lm_eval_files.STAMP
    named = [folder, folder / "a-model", folder / "a-model" / f"results_{stamp}.json"]
    named.append(folder / "a-model" / f"samples_gsm8k_{stamp}.jsonl")
    assert len({open_output(path).results.path for path in named}) == 1
    assert all(len(list(open_output(path).tasks["gsm8k"].samples())) == 8 for path in named)


def test_the_newest_of_several_is_taken_and_the_others_told(lm_eval_files, tmp_path):
    for day, right in (("2026-01-03", [True] * 4), ("2026-01-02", [False] * 4)):
        made = lm_eval_files.write(tmp_path / day, lm_eval_files.gsm8k(right), stamp=f"{day}T00-00-00.000000")
        shutil.copytree(made, tmp_path / "out", dirs_exist_ok=True)
    output = open_output(tmp_path / "out")
    assert output.tasks["gsm8k"].results.values["exact_match", "strict-match"] == 1.0
    assert all(each.values == {"exact_match": 1.0} for each in output.tasks["gsm8k"].samples())
    assert [path.name for path in output.passed_over] == ["results_2026-01-02T00-00-00.000000.json"]


def test_groups_are_no_tasks(lm_eval_files, tmp_path):
    def group(results):
        results["results"]["math"] = {"alias": "math", "exact_match,strict-match": 0.75}
        results["group_subtasks"] = {"math": ["gsm8k"]}

    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k(RIGHT), edit_results=group)
    assert list(open_output(folder).tasks) == ["gsm8k"]


def test_a_log_likelihood_task_has_scores_but_no_settings(lm_eval_files, tmp_path):
    def choice(lines):
        for line in lines:
            prompt = line["arguments"]["gen_args_0"]["arg_0"]
            line["arguments"] = {f"gen_args_{each}": {"arg_0": prompt, "arg_1": f" {each}"} for each in range(2)}
            line["resps"] = [[["-1.5", "False"]], [["-0.5", "True"]]]
            line["filtered_resps"] = [["-1.5", "False"], ["-0.5", "True"]]
            line["f1"], line["metrics"] = [1, 0], ["acc", "f1"]
        return lines

    written = lm_eval_files.Evaluation({"none": {"acc": [1.0, 0.0]}}, task="choice")
    task = open_output(lm_eval_files.write(tmp_path / "out", written, edit=choice)).tasks["choice"]
    assert [each.values for each in task.samples()] == [{"acc": 1.0, "f1": None}, {"acc": 0.0, "f1": None}]
    assert all(each.request_arguments is None for each in task.samples())


def path_that_is_not_there(files, folder):
    return folder / "nowhere"


def no_results(files, folder):
    made = files.write(folder / "out", files.gsm8k(RIGHT))
    next(made.rglob("results_*")).unlink()
    return made


def nothing(files, folder):
    return folder


def another_json(files, folder):
    (folder / "results_2026-01-02T03-04-05.678901.json").write_text("[]")
    return folder


def cut_results(files, folder):
    path = next(files.write(folder / "out", files.gsm8k(RIGHT)).rglob("results_*"))
    path.write_text(path.read_text()[:200])
    return path


def twice_in_results(files, folder):
    path = next(files.write(folder / "out", files.gsm8k(RIGHT)).rglob("results_*"))
    path.write_text(path.read_text().replace('"git_hash": null', '"git_hash": null, "git_hash": "x"'))
    return path


def two_models(files, folder):
    for name in ("one", "other"):
        files.write(folder / name, files.gsm8k(RIGHT))
    return folder


def plain_and_zipped(files, folder):
    made = files.write(folder / "out", files.gsm8k(RIGHT))
    path = next(made.rglob("samples_*"))
    shutil.copy(path, f"{path}.gz")
    return made


def samples_alone(files, folder):
    return next(no_results(files, folder).rglob("samples_*"))


@pytest.mark.parametrize(
    ("make", "reason", "message"),
    [
        (path_that_is_not_there, "no_such_path", "nowhere: no such file or folder"),
        (no_results, "no_results", "lm-eval ends with 0 even if it could not save it"),
        (samples_alone, "no_results", "beside it, without which it cannot be checked"),
        (nothing, "no_results", "--log_samples --output_path"),
        (another_json, "not_results", "not a results file of lm-eval"),
        (cut_results, "bad_json", "cut or damaged"),
        (twice_in_results, "duplicate_key", "'git_hash' is given twice"),
        (two_models, "several_models", "name one of"),
        (plain_and_zipped, "samples_twice", "remove one"),
    ],
)
def test_what_is_no_evaluation_is_refused_by_name(lm_eval_files, tmp_path, make, reason, message):
    with pytest.raises(BadOutputError) as refused:
        open_output(make(lm_eval_files, tmp_path))
    assert refused.value.reason == reason
    assert message in str(refused.value)
    assert json.dumps(str(refused.value)).count("\\n") == 0
