"""What a vLLM evaluation ran in, as the two lists of an environment line: what both arms must share, what is recorded."""

import os
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from ..hf_engine.task_subset import FEWSHOT_SEED, SubsetTask
from ..key_facts import PROBE_TEXTS, asked_facts, clipped, compact, cpu_model, installed_version
from .banner import Banner
from .engine_start import Prepared
from .overlay import Overlay
from .spec import EngineEnvironment, VllmSpec

if TYPE_CHECKING:
    from .observed_vllm import ObservedVLLM

VARIABLES = (
    "VLLM_ATTENTION_BACKEND", "VLLM_BATCH_INVARIANT", "VLLM_CPU_KVCACHE_SPACE", "VLLM_ENABLE_V1_MULTIPROCESSING",
    "VLLM_FLASH_ATTN_VERSION", "VLLM_USE_FLASHINFER_SAMPLER", "VLLM_USE_TRITON_FLASH_ATTN", "TRITON_DEFAULT_FP_FUSION",
    "CUBLAS_WORKSPACE_CONFIG",
)  # fmt: skip


def must_match(spec: VllmSpec, lm: "ObservedVLLM", task: SubsetTask) -> dict[str, str]:
    """Facts of which any difference makes two evaluations not comparable (design section 6, rule 2)."""
    lane, probe = spec.vllm_lane, [lm.tok_encode(text) for text in PROBE_TEXTS]
    return clipped(
        asked_facts(spec, lane, task.dump_config(), probe=probe, max_length=lm.max_length)
        | {
            "seeds": f"fewshot {FEWSHOT_SEED}; engine {lane.arguments.get('seed', 1234)}; greedy decoding",
            "engine": "vllm",
            "variables": compact({name: os.environ[name] for name in VARIABLES if name in os.environ}),
            "engine_environment": f"{spec.environment.name} ({spec.environment.sha256[:12]})",
            "vllm_release": spec.environment.release,
            "batch": f"batch_size {lane.batch_size}, threads {spec.threads}",
        }
    )


def recorded(
    spec: VllmSpec, lm: "ObservedVLLM", *, banner: Banner, prepared: Prepared, served: Mapping[str, str]
) -> dict[str, str]:
    """Facts that are told beside a verdict; what the commit itself changes begins with `served.`. `served` names the module
    of the commit's kernels that served each operator, if any did."""
    modes, overlay = prepared.modes, prepared.overlay
    config = lm.model.llm_engine.vllm_config if hasattr(lm.model.llm_engine, "vllm_config") else None
    return clipped(
        {
            "engine": "vllm",
            "mode_seen": f"{banner.mode} (from the engine's banner)",
            "modes_in_source": " and ".join(name for name, there in (("V0", modes.v0), ("V1", modes.v1)) if there),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": installed_version("triton"),
            "threads": str(torch.get_num_threads()),
            "cpu": cpu_model(),
            **{f"resolved.{name}": value for name, value in sorted((banner.settings | _resolved(config)).items())},
            **_served_engine(spec.environment, banner, overlay),
            **{f"served.{operator}": module for operator, module in served.items()},
        }
    )


def _served_engine(environment: EngineEnvironment, banner: Banner, overlay: Overlay | None) -> dict[str, str]:
    """Whose vLLM it was: the release's, the commit's Python over its compiled parts, or all of it the commit's."""
    if environment.built:
        return {
            "served.vllm": f"the commit's, built in full ({banner.release})",
            "served.changed_files": "built in full",
        }
    if overlay is None:
        return {"served.vllm": f"v{banner.release}", "served.changed_files": "none"}
    return {
        "served.vllm": f"the commit's over {environment.release}", "served.changed_files": _listed(overlay.changed)
    }  # fmt: skip


def _resolved(config: Any) -> dict[str, str]:
    """What the engine made of its arguments, where this release has a configuration object that tells."""
    places = {
        "dtype": ("model_config", "dtype"), "ssm_state_dtype": ("cache_config", "mamba_ssm_cache_dtype"),
        "prefix_caching": ("cache_config", "enable_prefix_caching"), "block_size": ("cache_config", "block_size"),
        "chunked_prefill": ("scheduler_config", "enable_chunked_prefill"),
        "token_budget": ("scheduler_config", "max_num_batched_tokens"), "max_num_seqs": ("scheduler_config", "max_num_seqs"),
        "eager": ("model_config", "enforce_eager"),
    }  # fmt: skip
    found = {name: getattr(getattr(config, part, None), field, None) for name, (part, field) in places.items()}
    return {name: str(value).removeprefix("torch.") for name, value in found.items() if value is not None}


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") or "none"
