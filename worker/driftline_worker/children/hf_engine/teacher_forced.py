"""Log-probabilities of prompts and gold answers under the lane's prefill schedule; lm-eval's own never chunks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..forced import ForcedText, little_endian_base64
from .observed_lm import ObservedLM

LOGIT_BYTES = 1 << 29
"""Most memory for the float32 logits of one forward; a batch shrinks rather than exceed it."""


@dataclass(frozen=True)
class ForcedLogprobs:
    """Log-probabilities in nats: prompt tokens without the first, then answer tokens."""

    doc_id: int
    prompt_tokens: int
    answer_tokens: int
    values: Tensor

    def fields(self) -> dict[str, Any]:
        """The fields of a teacher_forced line."""
        return {
            "doc_id": self.doc_id,
            "prompt_tokens": self.prompt_tokens,
            "answer_tokens": self.answer_tokens,
            "logprobs": little_endian_base64(self.values.tolist()),
        }


def forced_text(lm: ObservedLM, doc_id: int, prompt: str, answer: str) -> ForcedText:
    """Tokens of one question. What does not fit the model's length is cut on the left, as lm-eval does."""
    context, continuation = lm._encode_pair(prompt, answer)
    surplus = max(len(context) + len(continuation) - lm.max_length, 0)
    return ForcedText(doc_id, tuple(context[surplus:]), tuple(continuation))


def forced_logprobs(
    model: nn.Module, texts: Sequence[ForcedText], *, batch_size: int, chunk: int | None
) -> Iterator[list[ForcedLogprobs]]:
    """Batch after batch, longest texts first.

    Rows are padded on the right, so that every text is cut at its own multiples of `chunk` whatever it is batched with;
    a row that has ended is an empty sequence in later chunks. chunk=None: one forward over whole texts.
    """
    ordered = sorted(texts, key=lambda text: -len(text.tokens))
    start = 0
    while start < len(ordered):
        batch = ordered[start : start + _rows(model, len(ordered[start].tokens), chunk, batch_size)]
        yield [_cut(text, row) for text, row in zip(batch, _next_token_logprobs(model, batch, chunk), strict=True)]
        start += len(batch)


def _rows(model: nn.Module, longest: int, chunk: int | None, batch_size: int) -> int:
    columns = longest if chunk is None else min(chunk, longest)
    fitting = LOGIT_BYTES // (4 * columns * int(model.config.vocab_size))
    return max(1, min(batch_size, fitting))


@torch.inference_mode()  # type: ignore[untyped-decorator]  # torch is not in the environment that checks types
def _next_token_logprobs(model: nn.Module, batch: Sequence[ForcedText], chunk: int | None) -> Tensor:
    """(rows, longest - 1) float32: at column i the log-probability of token i + 1; meaningless in padding."""
    longest = max(len(text.tokens) for text in batch)
    pad = model.config.pad_token_id or 0
    tokens = torch.tensor([text.tokens + (pad,) * (longest - len(text.tokens)) for text in batch], device=model.device)
    lengths = torch.tensor([len(text.tokens) for text in batch], device=model.device)
    mask = (torch.arange(longest, device=model.device) < lengths[:, None]).long()
    following = torch.cat([tokens[:, 1:], tokens[:, :1]], dim=1)
    cache, parts = None, []
    for begin in range(0, longest, chunk or longest):
        end = min(begin + (chunk or longest), longest)
        output = model(
            input_ids=tokens[:, begin:end], attention_mask=mask[:, :end], past_key_values=cache, use_cache=True
        )
        cache = output.past_key_values
        scores = output.logits.float().log_softmax(-1)
        parts.append(scores.gather(-1, following[:, begin:end, None]).squeeze(-1))
    return torch.cat(parts, dim=1)[:, :-1].cpu()


def _cut(text: ForcedText, row: Tensor) -> ForcedLogprobs:
    scored = row[: len(text.tokens) - 1]
    return ForcedLogprobs(text.doc_id, len(text.prompt) - 1, len(text.answer), scored)
