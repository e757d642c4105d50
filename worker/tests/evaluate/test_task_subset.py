"""A subset asks its questions with the prompts of the full run."""

import json
from pathlib import Path
from typing import Any

import pytest
from driftline_worker.children.hf_engine.spec import EvaluationSpec, read_spec
from driftline_worker.children.hf_engine.task_subset import load_task, sample_fields, task_config
from driftline_worker.children.kernel_child import Refusal
from lm_eval.api.task import ConfigurableTask


@pytest.fixture
def spec_of(tmp_path: Path) -> Any:
    def read(raw: dict[str, Any]) -> EvaluationSpec:
        file = tmp_path / "spec.json"
        file.write_text(json.dumps(raw))
        return read_spec(file)

    return read


def test_prompts_of_a_subset_are_those_of_the_full_run(assets: Any, spec_of: Any) -> None:
    spec = spec_of(assets.spec())
    full = ConfigurableTask(config=task_config(spec))  # lm-eval's own task, asked for everything
    full.set_fewshot_seed(1234)
    full.build_all_requests()
    expected = {instance.doc_id: instance.args[0] for instance in full.instances}
    task = load_task(spec)
    task.build_all_requests()
    assert [instance.doc_id for instance in task.instances] == sorted(spec.doc_ids)
    assert {i.doc_id: i.args[0] for i in task.instances} == {doc_id: expected[doc_id] for doc_id in spec.doc_ids}
    assert len({prompt.split("Question:")[1] for prompt in expected.values()}) > 1  # the examples do differ


def test_only_the_subset_is_iterated_and_by_its_own_ids(assets: Any, spec_of: Any) -> None:
    spec = spec_of(assets.spec(doc_ids=[9, 3]))
    task = load_task(spec)
    task.build_all_requests()
    rows = [json.loads(line) for line in spec.test_path.read_text().splitlines()]
    assert [(doc_id, doc["question"]) for doc_id, doc in task.doc_iterator()] == [
        (3, rows[3]["question"]),
        (9, rows[9]["question"]),
    ]
    assert sample_fields(task, task.instances[0])["target"] == rows[3]["answer"]


def test_generation_arguments_are_the_lanes_and_written_out(assets: Any, spec_of: Any) -> None:
    generation = task_config(spec_of(assets.spec("V1", max_gen_toks=7)))["generation_kwargs"]
    assert (generation["max_gen_toks"], generation["prefill_chunk_size"]) == (7, 16)
    assert "prefill_chunk_size" not in task_config(spec_of(assets.spec("V0")))["generation_kwargs"]
    assert task_config(spec_of(assets.spec("V0", num_fewshot=1)))["num_fewshot"] == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"doc_ids": [0, 24]}, "24 questions"),
        ({"task_yaml": "missing.yaml"}, "missing.yaml"),
        ({"test_path": "missing.jsonl"}, "missing.jsonl"),
    ],
    ids=str,
)
def test_a_task_that_does_not_fit_is_refused(assets: Any, spec_of: Any, change: dict[str, Any], told: str) -> None:
    [(key, value)] = change.items()
    value = str(assets.folder / value) if isinstance(value, str) else value
    with pytest.raises(Refusal, match=told) as refusal:
        load_task(spec_of(assets.spec(**{key: value})))
    assert (refusal.value.kind, refusal.value.reason) == ("permanent", "task_invalid")
