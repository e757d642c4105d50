"""Teacher-forced log-probabilities against plain forwards of transformers, one text at a time."""

import base64
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from driftline_worker.children.hf_engine.granite_patch import install
from driftline_worker.children.hf_engine.kernels_loader import load_kernels
from driftline_worker.children.hf_engine.teacher_forced import (
    ForcedText,
    forced_logprobs,
    forced_text,
    little_endian_base64,
)
from lm_eval.api.instance import Instance
from torch import Tensor
from transformers import GraniteMoeHybridForCausalLM

KERNELS = Path(__file__).resolve().parents[3] / "kernels" / "src"
LENGTHS = ((40, 9), (3, 2), (17, 16), (1, 1), (32, 17), (15, 1))
"""Prompt and answer tokens. Some texts end on a chunk of 16, some one token after it."""


def texts() -> list[ForcedText]:
    draw = torch.Generator().manual_seed(5)
    made = []
    for doc_id, (prompt, answer) in enumerate(LENGTHS):
        tokens = torch.randint(2, 300, (prompt + answer,), generator=draw).tolist()
        made.append(ForcedText(doc_id, tuple(tokens[:prompt]), tuple(tokens[prompt:])))
    return made


def plain(model: GraniteMoeHybridForCausalLM, text: ForcedText) -> Tensor:
    tokens = torch.tensor([text.tokens])
    with torch.inference_mode():
        scores = model(input_ids=tokens).logits[0].float().log_softmax(-1)
    return scores[:-1].gather(1, tokens[0, 1:, None]).squeeze(1)


def forced(model: GraniteMoeHybridForCausalLM, chunk: int | None, batch_size: int = 4) -> dict[int, Any]:
    batches = forced_logprobs(model, texts(), batch_size=batch_size, chunk=chunk)
    return {result.doc_id: result for batch in batches for result in batch}


@pytest.fixture
def model(assets: Any) -> GraniteMoeHybridForCausalLM:
    return GraniteMoeHybridForCausalLM.from_pretrained(assets.model, dtype=torch.float32).eval()


@pytest.mark.parametrize("chunk", [None, 16, 7], ids=["V0", "V1 16", "V1 7"])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_agrees_with_a_plain_forward_of_each_text(
    model: GraniteMoeHybridForCausalLM, unpatched: None, chunk: int | None, batch_size: int
) -> None:
    expected = {text.doc_id: plain(model, text) for text in texts()}
    install(model, load_kernels(KERNELS), "torch")
    results = forced(model, chunk, batch_size)
    assert set(results) == set(expected)
    for doc_id, values in expected.items():
        torch.testing.assert_close(results[doc_id].values, values, rtol=0, atol=1e-4)
        prompt, answer = LENGTHS[doc_id]
        assert (results[doc_id].prompt_tokens, results[doc_id].answer_tokens) == (prompt - 1, answer)


def test_a_spoilt_carried_state_moves_chunked_texts_and_no_whole_ones(
    model: GraniteMoeHybridForCausalLM, unpatched: None, changed_kernels: Callable[[str], Path]
) -> None:
    expected = {text.doc_id: plain(model, text) for text in texts()}
    spoilt = changed_kernels(
        "_right = ssd_prefill\n"
        "def ssd_prefill(*args, initial_states=None, **options):\n"
        "    half = None if initial_states is None else initial_states / 2\n"
        "    return _right(*args, initial_states=half, **options)\n"
    )
    operators = install(model, load_kernels(spoilt), "torch")
    whole = forced(model, None)
    assert operators.calls.carried_scans == 0
    for doc_id, values in expected.items():
        torch.testing.assert_close(whole[doc_id].values, values, rtol=0, atol=1e-4)
    chunked = forced(model, 16)
    moved = {doc_id: (chunked[doc_id].values - values).abs().max().item() for doc_id, values in expected.items()}
    assert moved[0] > 1e-2
    assert moved[1] < 1e-4  # ends within its first chunk


def test_answer_logprobs_sum_to_lm_evals_loglikelihood(plain_lm: Any, unpatched: None) -> None:
    prompt, answer = "Question: Ann has 3 eggs and buys 4 more. How many?\nAnswer:", " 3 + 4 = 7\n#### 7"
    request = Instance("loglikelihood", {}, (prompt, answer), 0, ("tiny", 0, 1))
    [(expected, _)] = plain_lm.loglikelihood([request], disable_tqdm=True)
    text = forced_text(plain_lm, 0, prompt, answer)
    [[result]] = forced_logprobs(plain_lm.model, [text], batch_size=1, chunk=None)
    assert result.values[result.prompt_tokens :].sum().item() == pytest.approx(expected, abs=1e-4)
    assert len(result.values) == result.prompt_tokens + result.answer_tokens


def test_base64_is_little_endian_float32() -> None:
    data = base64.b64decode(little_endian_base64([-0.5, -3.25]))
    assert struct.unpack("<2f", data) == (-0.5, -3.25)
