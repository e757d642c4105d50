"""lm-eval's own vllm model, observed: each finished response with its facts as soon as the engine has it.

Prompts, order, batching, truncation, decoding and cutting of responses stay lm-eval's. The engine's `step` is watched: it
returns what finished in a step of the scheduler, and lm-eval's `generate` asks it until nothing is left.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.models.utils import postprocess_generated_text
from lm_eval.models.vllm_causallms import VLLM

from ..hf_engine.refusal import Refusal, permanent


@dataclass(frozen=True)
class ResponseFacts:
    """What the engine did for one response. response_tokens counts the token that ended it."""

    finish_reason: str
    prompt_tokens: int
    response_tokens: int
    left_truncated: bool


Finished = Callable[[Instance, str, ResponseFacts], None]


@dataclass(frozen=True)
class _Asked:
    """A prompt that is with the engine."""

    instance: Instance
    prompt_tokens: int
    left_truncated: bool
    until: tuple[str, ...]


class ObservedVLLM(VLLM):  # type: ignore[misc]  # lm-eval is untyped here
    """VLLM that tells about every finished response. A response's text is what lm-eval will make of it."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._finished: Finished | None = None
        self._tokens: list[list[int]] = []
        self._requests: list[Instance] = []
        self._asked: dict[tuple[int, ...], deque[_Asked]] = defaultdict(deque)
        self._told: dict[int, str] = {}
        self.first_tokens: list[int] = []
        engine, step, generate = self.model.llm_engine, self.model.llm_engine.step, self.model.generate

        def watched_step(*given: Any, **named: Any) -> Any:
            outputs = step(*given, **named)
            for output in outputs:
                if output.finished and self._asked:
                    self._take(output)
            return outputs

        def quiet_generate(*given: Any, **named: Any) -> Any:
            # Of a progress bar that TQDM_DISABLE silenced vLLM asks the elapsed time, which is 0, and divides by it.
            return generate(*given, **{**named, "use_tqdm": False})

        engine.step, self.model.generate = watched_step, quiet_generate

    def observe(self, finished: Finished) -> None:
        """Call `finished` for each response of the next `generate_until`."""
        self._finished = finished

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = True) -> list[str]:
        """lm-eval's own. Raises Refusal if it makes another text of a response than was told."""
        self._requests, self._told = requests, {}
        texts: list[str] = super().generate_until(requests, disable_tqdm=disable_tqdm)
        for request, text in zip(requests, texts, strict=True):
            if self._told.get(id(request)) != text:
                raise Refusal(
                    "transient", "samples_differ", f"question {request.doc_id} was not told as lm-eval has it"
                )
        return texts

    def tok_encode(self, string: Any, add_special_tokens: bool | None = None, **named: Any) -> Any:
        """lm-eval's own; of a batch of prompts the tokens are kept, which lm-eval cuts and sorts afterwards."""
        tokens = super().tok_encode(string, add_special_tokens, **named)
        if not isinstance(string, str) and len(string) == len(self._requests):
            self._tokens = tokens
        return tokens

    def _model_generate(self, requests: list[list[int]], generate: bool = False, sampling_params: Any = None) -> Any:
        if generate and self._finished is not None:
            self._expect(requests, sampling_params)
        outputs = super()._model_generate(requests, generate, sampling_params)
        self._asked.clear()
        return outputs

    def _expect(self, prompts: Sequence[list[int]], parameters: Sequence[Any]) -> None:
        """Note which question each prompt of a call belongs to: lm-eval sorts stably, so equal ones keep their order."""
        waiting: dict[tuple[int, ...], deque[Instance]] = defaultdict(deque)
        for instance, tokens in zip(self._requests, self._tokens, strict=True):
            if id(instance) not in self._told:
                waiting[tuple(tokens)].append(instance)
        for prompt, sampling in zip(prompts, parameters, strict=True):
            if sampling.temperature != 0:
                raise permanent("task_invalid", "only greedy decoding is compared; set temperature: 0.0")
            whole = tuple(prompt) if waiting.get(tuple(prompt)) else _whole_of(prompt, waiting)
            instance = waiting[whole].popleft()
            self.first_tokens = self.first_tokens or list(whole[:5])
            self._asked[tuple(prompt)].append(
                _Asked(instance, len(prompt), len(whole) > len(prompt), tuple(sampling.stop or ()))
            )

    def _take(self, output: Any) -> None:
        """One finished response."""
        queue = self._asked.get(tuple(output.prompt_token_ids))
        if not queue:
            raise Refusal("transient", "engine_mismatch", "the engine answered a prompt that was not asked")
        asked, [answer] = queue.popleft(), output.outputs
        text = postprocess_generated_text(answer.text, list(asked.until), self.think_end_token)
        self._told[id(asked.instance)] = text
        facts = ResponseFacts(
            finish_reason="length" if answer.finish_reason == "length" else "stop", prompt_tokens=asked.prompt_tokens,
            response_tokens=len(answer.token_ids), left_truncated=asked.left_truncated,
        )  # fmt: skip
        if self._finished is not None:
            self._finished(asked.instance, text, facts)


def _whole_of(prompt: list[int], waiting: dict[tuple[int, ...], deque[Instance]]) -> tuple[int, ...]:
    """The tokens of the question of which lm-eval left this end (or beginning) over."""
    cut, size = tuple(prompt), len(prompt)
    return next(
        whole for whole, queue in waiting.items() if queue and cut in (whole[len(whole) - size :], whole[:size])
    )
