"""What lm-eval 0.4.13 itself wrote of the canary on six questions: read whole, and found sound.

The files are its own but for names of folders and the report of its machine, and the samples are packed.
"""

from pathlib import Path

import pytest
from driftline.contracts.words import Arm
from driftline.lmeval import open_output
from driftline.lmeval.columns import read_columns
from driftline.lmeval.integrity import task_problems

REAL = Path(__file__).parent / "canary_0_4_13"


@pytest.mark.parametrize(
    ("task", "remarks"),
    [
        ("gsm8k_canary", {"limited"}),
        ("canary_choice", {"limited", "no_question_score"}),
        ("canary_ppl", {"limited", "no_question_score"}),
    ],
)
def test_means_errors_hashes_and_prompts_agree(task, remarks):
    output = open_output(REAL).tasks[task]
    found = task_problems(Arm.BASE, output, read_columns(output))
    assert {each.code for each in found} == remarks
    assert not any(each.blocks for each in found)


def test_its_results_are_read_as_it_wrote_them():
    output = open_output(REAL)
    assert list(output.tasks) == ["gsm8k_canary", "canary_choice", "canary_ppl"]
    results = output.tasks["gsm8k_canary"].results
    assert (results.shots, results.total, results.effective, results.version) == (3, 1319, 6, "1.0")
    assert results.values == {("exact_match", "strict-match"): 1.0, ("exact_match", "flexible-extract"): 1.0}
    assert results.higher_is_better == {"exact_match": True}
    assert output.results.lm_eval_version == "0.4.13"
    assert output.results.config["model_args"]["dtype"] == "float32"


def test_its_samples_are_read_as_it_wrote_them():
    samples = list(open_output(REAL).tasks["gsm8k_canary"].samples())
    assert [(each.doc_id, each.filter) for each in samples] == [
        (doc_id, name) for name in ("strict-match", "flexible-extract") for doc_id in range(6)
    ]
    assert samples[4].response == " 5 + 7 = 12.\n#### 12\n\n"
    assert (samples[4].extracted, samples[4].values) == ("12", {"exact_match": 1.0})
    assert samples[4].request_arguments["max_gen_toks"] == 64
