"""lm-eval's own hf model, observed: blocks of questions, each finished response with its facts, exact stops row by row.

Prompts, batching within a block, truncation, decoding and cutting of responses stay lm-eval's. Nothing is scored here.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from torch import Tensor
from transformers import StoppingCriteriaList

from .enough import Enough
from .refusal import permanent
from .stop_rows import StopRows, StopTexts


@dataclass(frozen=True)
class ResponseFacts:
    """What the engine did for one response. response_tokens counts the token that ended it."""

    finish_reason: str
    prompt_tokens: int
    response_tokens: int
    left_truncated: bool


Finished = Callable[[Instance, str, ResponseFacts], None]
"""Called once per response, as soon as its batch is there."""

Told = Callable[[], int | None]
"""How many questions are enough, or None while nobody said so."""


class ObservedLM(HFLM):  # type: ignore[misc]  # lm-eval is untyped here
    """HFLM that asks its questions block by block in a given order and tells about every finished response."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._order: Mapping[int, int] = {}
        self._block = 1
        self._begun = 0
        self._known: dict[int, str] = {}
        self._told: Told = _nobody_told
        self._finished: Finished | None = None
        self._waiting: dict[str, deque[Instance]] = {}
        self._facts: deque[ResponseFacts] = deque()
        self._stops: dict[tuple[str, ...], StopTexts] = {}
        self._prompts: dict[str, list[int]] = {}
        self.cache_hook = self

    def observe(self, doc_ids: Sequence[int], block: int, finished: Finished, *, told: Told | None = None) -> None:
        """Ask `doc_ids` in this order, `block` at a time, and call `finished` for each response.

        Once `told` says so, and that many are answered, generate_until raises Enough before the next batch.
        """
        self._order = {doc_id: rank for rank, doc_id in enumerate(doc_ids)}
        self._block, self._finished = block, finished
        self._told = told or _nobody_told

    def repeat(self, doc_ids: Sequence[int]) -> None:
        """From here on generate_until gives again the responses it gave to these, and asks nothing."""
        self._order = {doc_id: rank for rank, doc_id in enumerate(doc_ids)}
        self._finished, self._told = None, _nobody_told

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = True) -> list[str]:
        """Responses in the order of `requests`; inside, one call of lm-eval's own method per block.

        Raises Enough: what was answered so far may be had again after `repeat`.
        """
        if self._finished is None and all(request.doc_id in self._known for request in requests):
            return [self._known[request.doc_id] for request in requests]
        responses: dict[int, str] = {}
        ordered = sorted(requests, key=lambda request: self._order[request.doc_id])
        for start in range(0, len(ordered), self._block):
            self._begun = start
            block = ordered[start : start + self._block]
            self._waiting = defaultdict(deque)
            for request in block:
                self._waiting[request.args[0]].append(request)
            with torch.inference_mode():
                texts = super().generate_until(block, disable_tqdm=disable_tqdm)
            responses.update({id(request): text for request, text in zip(block, texts, strict=True)})
            self._known.update({request.doc_id: text for request, text in zip(block, texts, strict=True)})
        return [responses[id(request)] for request in requests]

    def add_partial(self, method: str, request: tuple[str, dict[str, Any]], response: str) -> None:
        """lm-eval's cache hook, called once per response in the order of its batch's rows.

        Equal prompts wait in one queue: lm-eval's sort is stable, so they finish in the order in which they were asked.
        """
        if method != "generate_until":
            return
        facts, instance = self._facts.popleft(), self._waiting[request[0]].popleft()
        if self._finished is not None:
            self._finished(instance, response, facts)

    def tok_encode(
        self,
        string: str,
        add_special_tokens: bool | None = None,
        left_truncate_len: int | None = None,
        **kwargs: Any,
    ) -> list[int]:
        """lm-eval's own, each text tokenised once: sorting, truncation and the teacher-forced pass all ask."""
        if add_special_tokens is not None or left_truncate_len or kwargs:
            tokens: list[int] = super().tok_encode(string, add_special_tokens, left_truncate_len, **kwargs)
            return tokens
        if string not in self._prompts:
            self._prompts[string] = super().tok_encode(string)
        return self._prompts[string]

    def tok_batch_encode(self, strings: list[str], *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """lm-eval's own; remembers which rows lose their beginning."""
        limit = kwargs.get("left_truncate_len")
        self._truncated = [limit is not None and len(self.tok_encode(string)) > limit for string in strings]
        tokens, mask = super().tok_batch_encode(strings, *args, **kwargs)
        return tokens, mask

    def _model_generate(self, context: Tensor, max_length: int, stop: list[str], **generation: Any) -> Tensor:
        """Greedy generation as lm-eval asks for it, with row-wise stops; notes the facts of each row."""
        self._check_enough()
        if generation.get("do_sample") or generation.pop("temperature", 0.0):
            raise permanent(
                "task_invalid", "only greedy decoding is compared; set do_sample: false and temperature: 0.0"
            )
        criterion = StopRows(self._stop_texts(tuple(stop)), context.shape[1], context.shape[0])
        tokens: Tensor = self.model.generate(
            input_ids=context,
            max_length=max_length,
            stopping_criteria=StoppingCriteriaList([criterion]),
            pad_token_id=self.tokenizer.pad_token_id,
            use_cache=True,
            **generation,
        )
        prompts = generation["attention_mask"].sum(1).tolist()
        ends = self._end_tokens()
        for row, generated in enumerate(tokens[:, context.shape[1] :].tolist()):
            stopped = _generated_tokens(generated, ends, criterion.stopped_at[row])
            self._facts.append(
                ResponseFacts(
                    finish_reason="length" if stopped is None else "stop",
                    prompt_tokens=prompts[row],
                    response_tokens=len(generated) if stopped is None else stopped,
                    left_truncated=self._truncated[row],
                )
            )
        return tokens

    def _check_enough(self) -> None:
        """Between batches, so that an answer on its way is waited for and a block that nobody wants is not finished."""
        after = self._told()
        if after is not None and after <= self._begun:
            self._facts.clear()
            raise Enough(after)

    def _stop_texts(self, texts: tuple[str, ...]) -> StopTexts:
        if texts not in self._stops:
            self._stops[texts] = StopTexts(self.tokenizer, texts)
        return self._stops[texts]

    def _end_tokens(self) -> frozenset[int]:
        """The tokens at which transformers ends a row."""
        ends = self.model.generation_config.eos_token_id
        return frozenset(ends if isinstance(ends, list) else [ends] if ends is not None else [])


def _nobody_told() -> None:
    return None


def _generated_tokens(generated: list[int], ends: frozenset[int], stopped_at: int | None) -> int | None:
    """How many tokens a row made up to the one that ended it, or None if the length limit did."""
    ended = next((place + 1 for place, token in enumerate(generated) if token in ends), None)
    reached = [count for count in (ended, stopped_at) if count is not None]
    return min(reached, default=None)
