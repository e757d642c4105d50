"""The kernels under test in place of transformers' Mamba2 functions (transformers 5, GraniteMoeHybrid and what does as it does).

The layers look these functions up in their module at every call. They pass padded batches; the kernels take packed
sequences, so each forward's padding is stripped by one layout that all its layers share.
"""

import sys
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from .batch_layout import BatchLayout, build_layout
from .kernel_calls import KernelCalls
from .refusal import permanent

MODELS = ("GraniteMoeHybridForCausalLM", "Plamo2ForCausalLM")
"""Classes whose modules call the four functions as GraniteMoeHybrid does; plamo2's is the canary's own code."""


class GraniteOperators:
    """transformers' four Mamba2 functions, served by `kernels` on `backend`. Shapes are those of transformers."""

    def __init__(self, kernels: ModuleType, backend: str, chunk_size: int) -> None:
        self.calls = KernelCalls()
        self._kernels = kernels
        self._backend = backend
        self._chunk_size = chunk_size
        self._inputs: tuple[Tensor, Tensor | None] | None = None
        self._layout: BatchLayout | None = None

    def begin_forward(self, _model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Pre-hook of the inner model: note this forward's tokens and padding; a layout is built if a layer asks."""
        mask = kwargs.get("attention_mask", args[1] if len(args) > 1 else None)
        if isinstance(mask, dict):
            mask = mask["linear_attention"]
        tokens = kwargs.get("input_ids", args[0] if args else None)
        tokens = kwargs["inputs_embeds"] if tokens is None else tokens
        if mask is not None and mask.dim() != 2:
            raise permanent("engine_mismatch", f"padding must come as a 2-D mask, got one of shape {tuple(mask.shape)}")
        self._inputs, self._layout = (tokens, mask), None
        self.calls.forwards += 1

    def restart_counts(self) -> None:
        """Count from zero: what came before was a rehearsal."""
        self.calls = KernelCalls()

    @property
    def layout(self) -> BatchLayout:
        """This forward's layout; decode steps never need one."""
        if self._layout is None:
            if self._inputs is None:
                raise RuntimeError("a Mamba2 layer ran outside the hooked model")
            with self.calls.running("build_metadata"):
                self._layout = build_layout(*self._inputs, self._kernels, self._chunk_size)
            self.calls.metadata_builds += 1
        return self._layout

    def causal_conv1d_fn(
        self,
        hidden_states: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        activation: str | None = None,
        **_: object,
    ) -> Tensor:
        """hidden_states (b, D, before + columns), the first `before` cached from earlier chunks; (b, D, columns) out.

        The cached columns become initial states, so that the commit's carried convolution state is what runs.
        """
        layout, before = self.layout, hidden_states.shape[-1] - self.layout.columns
        tokens = layout.pack(hidden_states[:, :, before:].transpose(1, 2))
        carried = None
        if before:
            history = weight.shape[-1] - 1
            cached = nn.functional.pad(hidden_states[:, :, :before], (max(history - before, 0), 0))
            carried = cached[:, :, -history:].contiguous()
        with self.calls.running("causal_conv1d_prefill"):
            packed: Tensor = self._kernels.causal_conv1d_prefill(
                tokens,
                weight,
                bias,
                metadata=layout.metadata,
                initial_states=carried,
                activation=activation,
                backend=self._backend,
            ).out
        return layout.unpack(packed).transpose(1, 2)

    def causal_conv1d_update(
        self,
        hidden_states: Tensor,
        conv_state: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        activation: str | None = None,
        **_: object,
    ) -> Tensor:
        """hidden_states (b, D, 1); conv_state (b, D, W) in place, its last W-1 columns are the kernels' state."""
        history = weight.shape[-1] - 1
        conv_state[:, :, :-history].copy_(conv_state[:, :, 1 : conv_state.shape[-1] - history + 1])
        with self.calls.running("causal_conv1d_update"):
            out: Tensor = self._kernels.causal_conv1d_update(
                hidden_states.squeeze(-1),
                conv_state[:, :, -history:],
                weight,
                bias,
                activation=activation,
                backend=self._backend,
            )
        return out.unsqueeze(-1)

    def chunk_scan(
        self, hidden_states: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, chunk_size: int, **options: Any
    ) -> Tensor | tuple[Tensor, Tensor]:
        """hidden_states (b, L, H, P), dt (b, L, H), B and C (b, L, G, N); the padded output, and final states if asked.

        chunk_size is the model's own, with which the layout's metadata was built.
        """
        layout, initial = self.layout, options.get("initial_states")
        packed = [layout.pack(tensor) for tensor in (hidden_states, dt, B, C)]
        self.calls.carried_scans += initial is not None
        with self.calls.running("ssd_prefill"):
            result = self._kernels.ssd_prefill(
                packed[0],
                packed[1],
                A,
                packed[2],
                packed[3],
                metadata=layout.metadata,
                D=options.get("D"),
                dt_bias=options.get("dt_bias"),
                dt_softplus=options.get("dt_softplus", False),
                dt_limit=tuple(options.get("dt_limit", (0.0, float("inf")))),
                initial_states=initial,
                backend=self._backend,
            )
        out = layout.unpack(result.out)
        return (out, result.final_states) if options.get("return_final_states") else out

    def state_update(
        self,
        state: Tensor,
        hidden_states: Tensor,
        dt: Tensor,
        A: Tensor,
        B: Tensor,
        C: Tensor,
        D: Tensor,
        **options: Any,
    ) -> Tensor:
        """One decode step; state (b, H, P, N) in place. transformers spreads dt, A, D and dt_bias over P and N."""
        bias = options.get("dt_bias")
        with self.calls.running("selective_state_update"):
            out: Tensor = self._kernels.selective_state_update(
                state,
                hidden_states,
                dt[..., 0],
                A[:, 0, 0],
                B,
                C,
                D=D[:, 0],
                dt_bias=None if bias is None else bias[:, 0],
                dt_softplus=options.get("dt_softplus", False),
                backend=self._backend,
            )
        return out


def install(model: nn.Module, kernels: ModuleType, backend: str) -> GraniteOperators:
    """Put `kernels` under `model` (one of MODELS). Raises Refusal model_unsupported."""
    operators = GraniteOperators(kernels, backend, _chunk_size(model))
    model.model.register_forward_pre_hook(operators.begin_forward, with_kwargs=True)
    replacing = {
        "causal_conv1d_fn": operators.causal_conv1d_fn,
        "causal_conv1d_update": operators.causal_conv1d_update,
        "mamba2_chunk_scan": operators.chunk_scan,
        "mamba2_selective_state_update": operators.state_update,
    }
    modeling = sys.modules[type(model).__module__]
    if missing := [name for name in replacing if not hasattr(modeling, name)]:
        raise permanent("model_unsupported", f"{modeling.__name__} has no {missing[0]} that kernels could replace")
    for name, function in replacing.items():
        setattr(modeling, name, function)
    return operators


def _chunk_size(model: nn.Module) -> int:
    """Tokens of the model's scan chunk. Raises Refusal model_unsupported where the kernels cannot serve the model."""
    if type(model).__name__ not in MODELS:
        raise permanent("model_unsupported", f"engine hf serves {' and '.join(MODELS)}, got {type(model).__name__}")
    if getattr(model.config, "mamba_proj_bias", False):
        raise permanent("model_unsupported", "mamba_proj_bias=True would put the bias into the convolution's padding")
    return int(model.config.mamba_chunk_size)
