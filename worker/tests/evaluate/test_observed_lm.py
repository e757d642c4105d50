"""The observed model answers as lm-eval's own, and tells the truth about each response."""

from typing import Any

import pytest
from driftline_worker.children.hf_engine.observed_lm import ObservedLM, ResponseFacts
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

PROMPTS = [f"Question: Ann has {n} eggs{' and Ben sees 3 hens' * (n % 4)}. How many?\nAnswer:" for n in range(9)]
LIMIT = 14


def requests_for(prompts: list[str], until: list[str], limit: int = LIMIT) -> list[Instance]:
    options = {"until": until, "do_sample": False, "temperature": 0.0, "max_gen_toks": limit}
    return [
        Instance("generate_until", {"question": prompt}, (prompt, dict(options)), 0, ("tiny", doc_id, 1))
        for doc_id, prompt in enumerate(prompts)
    ]


def own(assets: Any, requests: list[Instance], **arguments: Any) -> list[str]:
    """lm-eval's unchanged model on the same requests."""
    options = {"batch_size": 4, "max_length": 512} | arguments
    lm = HFLM(pretrained=str(assets.model), dtype="float32", device="cpu", **options)
    answers: list[str] = lm.generate_until(requests, disable_tqdm=True)
    return answers


def observed(lm: ObservedLM, requests: list[Instance], *, block: int = 100) -> tuple[list[str], dict[int, Any]]:
    """Responses, and what was told of each: doc_id to (place, response, facts)."""
    told: dict[int, tuple[int, str, ResponseFacts]] = {}
    order = [request.doc_id for request in reversed(requests)]
    lm.observe(order, block, lambda i, text, facts: told.update({i.doc_id: (len(told), text, facts)}))
    return lm.generate_until(requests), told


def test_responses_are_lm_evals_own_and_told_once_each(assets: Any, plain_lm: ObservedLM, unpatched: None) -> None:
    requests = requests_for(PROMPTS, ["Question:"])
    expected = own(assets, requests)
    answers, told = observed(plain_lm, requests)
    assert answers == expected
    assert {doc_id: text for doc_id, (_, text, _) in told.items()} == dict(enumerate(expected))
    assert len(set(expected)) > 3


def test_a_stop_text_ends_its_row_and_no_other(assets: Any, plain_lm: ObservedLM, unpatched: None) -> None:
    free = own(assets, requests_for(PROMPTS, ["\x00"]))
    stop = free[0][4:6]
    assert stop.isascii()
    assert 0 < sum(stop in text for text in free) < len(free)
    requests = requests_for(PROMPTS, [stop, "Question:"])
    answers, told = observed(plain_lm, requests)
    assert answers == own(assets, requests) == [text.split(stop)[0] for text in free]
    for doc_id, text in enumerate(free):
        facts = told[doc_id][2]
        assert facts.finish_reason == ("stop" if stop in text else "length")
        if stop in text:
            kept = plain_lm.tokenizer(text.split(stop)[0])["input_ids"]
            assert facts.response_tokens <= LIMIT
            assert facts.response_tokens >= min(len(kept), 1)
        else:
            assert facts.response_tokens == LIMIT


def test_an_end_token_stops_a_row(assets: Any, plain_lm: ObservedLM, unpatched: None) -> None:
    requests = requests_for(PROMPTS[:4], [])
    tokens = plain_lm.model.generate(
        **plain_lm.tokenizer(PROMPTS[0], return_tensors="pt"), max_new_tokens=3, do_sample=False
    )
    third = int(tokens[0, -1])
    before = plain_lm.model.generation_config.eos_token_id
    plain_lm.model.generation_config.eos_token_id = third
    try:
        _, told = observed(plain_lm, requests)
    finally:
        plain_lm.model.generation_config.eos_token_id = before
    facts = told[0][2]
    assert facts.finish_reason == "stop"
    assert facts.response_tokens <= 3


def test_blocks_follow_the_given_order(plain_lm: ObservedLM, unpatched: None) -> None:
    requests = requests_for(PROMPTS, ["Question:"])
    answers, told = observed(plain_lm, requests, block=2)
    place = {doc_id: told[doc_id][0] for doc_id in told}
    for doc_id in range(len(PROMPTS)):  # the order is reversed: the last question belongs to the first block
        assert place[doc_id] // 2 == (len(PROMPTS) - 1 - doc_id) // 2
    assert answers == [told[doc_id][1] for doc_id in range(len(PROMPTS))]


def test_equal_prompts_are_told_as_two_questions(plain_lm: ObservedLM, unpatched: None) -> None:
    requests = requests_for([PROMPTS[1], PROMPTS[2], PROMPTS[1]], ["Question:"])
    answers, told = observed(plain_lm, requests)
    assert set(told) == {0, 1, 2}
    assert answers[0] == answers[2] == told[0][1] == told[2][1]


def test_a_prompt_that_loses_its_beginning_says_so(assets: Any, unpatched: None) -> None:
    lm = ObservedLM(pretrained=str(assets.model), dtype="float32", device="cpu", batch_size=4, max_length=45)
    requests = requests_for([PROMPTS[0], PROMPTS[3]], ["Question:"])
    counts = [len(lm.tok_encode(request.args[0])) for request in requests]
    assert counts[0] <= 45 - LIMIT < counts[1]
    answers, told = observed(lm, requests)
    assert [told[doc_id][2].left_truncated for doc_id in (0, 1)] == [False, True]
    assert [told[doc_id][2].prompt_tokens for doc_id in (0, 1)] == [counts[0], 45 - LIMIT]
    assert answers == own(assets, requests, max_length=45)


def test_prompt_tokens_leave_padding_out(plain_lm: ObservedLM, unpatched: None) -> None:
    _, told = observed(plain_lm, requests_for(PROMPTS, ["Question:"]))
    for doc_id, prompt in enumerate(PROMPTS):
        assert told[doc_id][2].prompt_tokens == len(plain_lm.tok_encode(prompt))


@pytest.mark.parametrize("options", [{"do_sample": True}, {"temperature": 0.7}], ids=str)
def test_sampling_is_refused(plain_lm: ObservedLM, unpatched: None, options: dict[str, Any]) -> None:
    requests = requests_for(PROMPTS[:1], ["Question:"])
    requests[0].args[1].update({"do_sample": True, "temperature": 1.0} | options)
    with pytest.raises(Exception, match="greedy"):
        observed(plain_lm, requests)
