"""Log-probabilities of prompts and gold answers by vLLM's prompt_logprobs, under the engine's own prefill schedule."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..forced import ForcedText, forced_fields
from ..hf_engine.refusal import Refusal

if TYPE_CHECKING:
    from .observed_vllm import ObservedVLLM

CALL_PROMPTS = 16
"""Prompts a call: enough that the scheduler fills its token budget with chunks, few enough that a phase is seen to move."""


def forced_text(lm: "ObservedVLLM", doc_id: int, prompt: str, answer: str) -> ForcedText:
    """Tokens of one question. What does not fit the engine's length with one token to generate is cut on the left."""
    context, continuation = lm._encode_pair(prompt, answer)
    surplus = max(len(context) + len(continuation) - (lm.max_length - 1), 0)
    return ForcedText(doc_id, tuple(context[surplus:]), tuple(continuation))


def forced_logprobs(lm: "ObservedVLLM", texts: Sequence[ForcedText]) -> Iterator[list[dict[str, Any]]]:
    """Fields of teacher_forced lines, call after call, longest texts first.

    Raises Refusal if the engine leaves a token's log-probability out.
    """
    from vllm import SamplingParams

    parameters = SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=0, detokenize=False)
    ordered = sorted(texts, key=lambda text: -len(text.tokens))
    for start in range(0, len(ordered), CALL_PROMPTS):
        batch = ordered[start : start + CALL_PROMPTS]
        outputs = lm.model.generate(
            [{"prompt_token_ids": list(text.tokens)} for text in batch], sampling_params=parameters, use_tqdm=False
        )
        yield [forced_fields(text, _values(text, output)) for text, output in zip(batch, outputs, strict=True)]


def _values(text: ForcedText, output: Any) -> list[float]:
    """One value in nats for each token but the first."""
    given = output.prompt_logprobs or []
    if len(given) != len(text.tokens):
        raise Refusal(
            "transient", "logprobs_missing",
            f"question {text.doc_id}: {len(text.tokens)} tokens, {len(given)} log-probabilities",
        )  # fmt: skip
    return [float(given[place][token].logprob) for place, token in enumerate(text.tokens) if place]
