"""A question's prompt and gold answer as tokens, and their log-probabilities as a line holds them. Shared by the engines."""

import base64
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ForcedText:
    """Token ids of one question's prompt and gold answer, as lm-eval's loglikelihood splits them."""

    doc_id: int
    prompt: tuple[int, ...]
    answer: tuple[int, ...]

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.prompt + self.answer


def forced_fields(text: ForcedText, values: Sequence[float]) -> dict[str, Any]:
    """The fields of a teacher_forced line; `values` in nats: prompt tokens without the first, then answer tokens."""
    return {
        "doc_id": text.doc_id,
        "prompt_tokens": len(text.prompt) - 1,
        "answer_tokens": len(text.answer),
        "logprobs": little_endian_base64(values),
    }


def little_endian_base64(values: Sequence[float]) -> str:
    """float32 values as base64 of their little-endian bytes."""
    data = array("f", values)
    if sys.byteorder == "big":
        data.byteswap()
    return base64.b64encode(data.tobytes()).decode("ascii")
