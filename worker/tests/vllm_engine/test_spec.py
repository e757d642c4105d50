"""The spec of a vLLM lane: read once, refused by name."""

from collections.abc import Callable

import pytest
from driftline_worker.children.hf_engine.refusal import Refusal
from driftline_worker.children.vllm_engine.spec import VllmSpec

MakeSpec = Callable[..., VllmSpec]


def test_what_goes_to_the_engine_and_what_to_the_harness(make_spec: MakeSpec) -> None:
    given = {"dtype": "float32", "max_num_batched_tokens": 256, "num_fewshot": 3, "batch_size": "auto"}
    spec = make_spec(arguments=given)
    assert spec.vllm_lane.engine_arguments == {"dtype": "float32", "max_num_batched_tokens": 256}
    assert (spec.vllm_lane.batch_size, spec.lane.prefill_chunk, spec.device) == ("auto", None, "cpu")
    assert make_spec(arguments={"batch_size": 8}).vllm_lane.batch_size == 8
    assert not spec.overlay
    assert make_spec(layout="vllm").overlay


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arguments": {"enforce_eagre": True}}, "'enforce_eagre' is unknown, did you mean 'enforce_eager'?"),
        ({"mode": "V2"}, "'V2'"),
        ({"doc_ids": [1, 1]}, "none twice"),
        ({"model_path": "canary/model"}, "model_path must be an absolute path"),
        ({"environment": None}, "a table was expected"),
    ],
)
def test_what_does_not_fit_is_named(make_spec: MakeSpec, changes: dict[str, object], words: str) -> None:
    with pytest.raises(Refusal, match="the spec does not fit") as refusal:
        make_spec(**changes)
    assert (refusal.value.kind, refusal.value.reason) == ("permanent", "bad_spec")
    assert words in str(refusal.value)
