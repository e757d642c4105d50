"""Two short prompts through an engine on the commit's kernels, before any question: kernels that cannot run say so at once,
and each operator's first call is reported.

A plugin that vLLM did not load leaves vLLM's own operators in place, which would answer for the commit. So what was called is
looked up, never assumed.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from ..hf_engine.kernels_loader import OPERATORS
from ..hf_engine.refusal import permanent
from ..vllm_plugin.distribution import Call, reported_calls

if TYPE_CHECKING:
    from .observed_vllm import ObservedVLLM

PROMPT_TOKENS = (37, 5)
RESPONSE_TOKENS = 3

NORM = "rms_norm_gated"
"""A model that gates inside the scan, as PLaMo2 does, has none."""


def rehearse(lm: "ObservedVLLM", report: Path) -> dict[str, str]:
    """Operator -> module and file that served it. Raises Refusal engine_mismatch if one of the kernels' was not called."""
    from vllm import SamplingParams

    sampling = SamplingParams(temperature=0, max_tokens=RESPONSE_TOKENS, min_tokens=RESPONSE_TOKENS, detokenize=False)
    prompts = [{"prompt_token_ids": [2 + place % 29 for place in range(count)]} for count in PROMPT_TOKENS]
    lm.model.generate(prompts, sampling_params=sampling, use_tqdm=False)
    return served_operators(reported_calls(report))


def served_operators(calls: tuple[Call, ...]) -> dict[str, str]:
    """As `rehearse`, of what was reported."""
    served = {
        name: "; ".join(f"{call.served}, in place of {call.in_place_of}" for call in calls if call.operator == name)
        for name in (*OPERATORS, NORM)
    }
    if missing := [name for name in OPERATORS if not served[name]]:
        raise permanent(
            "engine_mismatch",
            f"the engine did not call {', '.join(missing)} of the kernels under test: is it a Mamba2 model?",
        )
    return served | {NORM: served[NORM] or "none: the model gates elsewhere, or across ranks"}
