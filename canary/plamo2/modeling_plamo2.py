"""PLaMo 2 for transformers 5: what `trust_remote_code` loads, with the weight names and layouts of the family.

Lives here: the layers and their caches. The four Mamba2 functions are transformers' own, looked up in this module at every
call, so that an engine can put others in their place as it does for granite. Must not: training, kernels.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import Cache, DynamicCache, GenerationMixin, PreTrainedModel
from transformers import initialization as init
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import create_causal_mask, create_recurrent_attention_mask
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
from transformers.models.granitemoehybrid.modeling_granitemoehybrid import (
    causal_conv1d_fn,
    causal_conv1d_update,
    mamba2_chunk_scan,
    mamba2_selective_state_update,
)

from .configuration_plamo2 import Plamo2Config

# What each norm's weight is stored without. The family scales what a branch adds by these, and training starts from them.
PRE, POST_MIXER, POST_MLP = 1.0, 1.0 / 5, 1.0 / 5**1.5
STORED = torch.bfloat16


def normed(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    """x over the root mean square of its last dimension, times scale; computed in float32, given in x's dtype."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (wide * scale.float()).to(x.dtype)


class OffsetNorm(nn.Module):
    """Root-mean-square norm whose stored weight lacks `offset`."""

    def __init__(self, size: int, offset: float, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.offset, self.eps = offset, eps

    @property
    def scale(self) -> Tensor:
        """Weight plus offset, rounded as vLLM rounds it: there the sum is made in the file's dtype, whatever dtype the
        model runs in, and float32 runs of both engines shall agree. The gradient passes as if nothing were rounded."""
        exact = self.weight + self.offset
        rounded = (self.weight.detach().to(STORED) + self.offset).to(exact.dtype)
        return exact + (rounded - exact).detach()

    def forward(self, x: Tensor) -> Tensor:
        """(..., size) to the same."""
        return normed(x, self.scale, self.eps)


class Plamo2Mamba(nn.Module):
    """Mamba2 with one group, whose step sizes, B and C are projected from the convolved channels and normed."""

    def __init__(self, config: Plamo2Config, layer: int) -> None:
        super().__init__()
        inner, heads, state, rank = (
            config.mamba_inner,
            config.mamba_num_heads,
            config.mamba_d_state,
            config.time_step_rank,
        )
        self.layer, self.chunk_size, self.eps = layer, config.mamba_chunk_size, config.rms_norm_eps
        self.heads, self.head_dim, self.state, self.rank = heads, config.hidden_size_per_head, state, rank
        self.width = config.mamba_d_conv
        self.in_proj = nn.Linear(config.hidden_size, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, self.width, groups=inner, padding=self.width - 1, bias=False)
        self.bcdt_proj = nn.Linear(inner, rank + 2 * state, bias=False)
        self.dt_proj = nn.Linear(rank, heads, bias=False)
        self.dt_bias = nn.Parameter(torch.zeros(heads))
        self.A_log = nn.Parameter(torch.zeros(heads))
        self.D = nn.Parameter(torch.ones(heads))
        self.B_norm_weight = nn.Parameter(torch.ones(state))
        self.C_norm_weight = nn.Parameter(torch.ones(state))
        self.dt_norm_weight = nn.Parameter(torch.ones(rank))
        self.out_proj = nn.Linear(inner, config.hidden_size, bias=False)

    def gate_and_channels(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(b, l, hidden) to gate and channels, both (b, l, heads * head_dim); rows of in_proj go head by head."""
        gate, channels = self.in_proj(x).unflatten(-1, (self.heads, -1)).chunk(2, dim=-1)
        return gate.flatten(-2), channels.flatten(-2)

    def steps_b_c(self, channels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(b, l, inner) convolved to step sizes (b, l, heads) before bias and softplus, B and C (b, l, state)."""
        B, C, steps = self.bcdt_proj(channels).split([self.state, self.state, self.rank], dim=-1)
        steps = self.dt_proj(normed(steps, self.dt_norm_weight, self.eps))
        return steps, normed(B, self.B_norm_weight, self.eps), normed(C, self.C_norm_weight, self.eps)

    def forward(self, x: Tensor, mask: Tensor | None, cache: Cache | None) -> Tensor:
        """x (b, l, hidden), mask (b, l) with 0 for padding; the cache's states in place."""
        if mask is not None:
            x = x * mask[..., None].to(x.dtype)
        carried = cache is not None and cache.has_previous_state(self.layer)
        gate, channels = self.gate_and_channels(x)
        if carried and x.shape[1] == 1:
            y = self._decoded(channels, cache.layers[self.layer])
        else:
            y = self._scanned(channels, mask, cache, carried=carried)
        y = y.flatten(-2).float() * functional.silu(gate.float())
        return self.out_proj(y.to(x.dtype))

    def _scanned(self, channels: Tensor, mask: Tensor | None, cache: Cache | None, *, carried: bool) -> Tensor:
        """Prefill: (b, l, inner) to (b, l, heads, head_dim)."""
        length, columns = channels.shape[1], channels.transpose(1, 2)
        # Taken before the convolution's state is updated: afterwards a first chunk too would seem to have one before it.
        initial = cache.layers[self.layer].recurrent_states[0] if carried else None
        if cache is not None:
            columns = cache.update_conv_state(columns, self.layer, conv_kernel_size=self.width)
        columns = causal_conv1d_fn(columns, self.conv1d.weight.squeeze(1), None, activation="silu")
        channels = columns[:, :, -length:].transpose(1, 2)
        if mask is not None:
            channels = channels * mask[..., None].to(channels.dtype)
        steps, B, C = self.steps_b_c(channels)
        y, final = mamba2_chunk_scan(
            channels.unflatten(-1, (self.heads, self.head_dim)),
            steps,
            -torch.exp(self.A_log.float()),
            B.unsqueeze(2),
            C.unsqueeze(2),
            chunk_size=self.chunk_size,
            D=self.D,
            return_final_states=True,
            dt_bias=self.dt_bias,
            dt_softplus=True,
            initial_states=initial,
        )
        if cache is not None:
            cache.update_recurrent_state(final, layer_idx=self.layer)
        return y

    def _decoded(self, channels: Tensor, states: Any) -> Tensor:
        """One token with its states: (b, 1, inner) to (b, 1, heads, head_dim)."""
        columns = causal_conv1d_update(
            channels.transpose(1, 2), states.conv_states[0], self.conv1d.weight.squeeze(1), None, activation="silu"
        )
        channels = columns.transpose(1, 2)
        steps, B, C = self.steps_b_c(channels)
        spread = (-1, self.head_dim)
        y = mamba2_selective_state_update(
            states.recurrent_states[0],
            channels.squeeze(1).unflatten(-1, (self.heads, self.head_dim)),
            steps.transpose(1, 2).expand(-1, *spread),
            -torch.exp(self.A_log.float())[:, None, None].expand(-1, self.head_dim, self.state),
            B,
            C,
            self.D[:, None].expand(*spread),
            dt_bias=self.dt_bias[:, None].expand(*spread),
            dt_softplus=True,
        )
        return y.unsqueeze(1)


class Plamo2Attention(nn.Module):
    """Grouped-query attention with rotary positions; queries and keys are normed, with a weight of each head's own."""

    def __init__(self, config: Plamo2Config, layer: int) -> None:
        super().__init__()
        self.layer, self.eps, self.head_dim = layer, config.rms_norm_eps, config.hidden_size_per_head
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.num_key_value_groups, self.is_causal = self.heads // self.kv_heads, True  # read by transformers' attention
        width = (self.heads + 2 * self.kv_heads) * self.head_dim
        self.qkv_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.q_weight = nn.Parameter(torch.ones(self.heads, self.head_dim))
        self.k_weight = nn.Parameter(torch.ones(self.kv_heads, self.head_dim))
        self.o_proj = nn.Linear(self.heads * self.head_dim, config.hidden_size, bias=False)

    def queries_keys_values(self, x: Tensor, rotation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(b, l, hidden) to three of (b, heads or kv_heads, l, head_dim), queries and keys turned to their positions."""
        parts = [self.heads, self.kv_heads, self.kv_heads]
        q, k, v = self.qkv_proj(x).unflatten(-1, (-1, self.head_dim)).split(parts, dim=2)
        q, k = normed(q, self.q_weight, self.eps), normed(k, self.k_weight, self.eps)
        q, k = (turned(t.transpose(1, 2), rotation) for t in (q, k))
        return q, k, v.transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor | None, cache: Cache | None, rotation: Tensor) -> Tensor:
        """x (b, l, hidden); mask as transformers' create_causal_mask makes it; rotation of `rotations`."""
        q, k, v = self.queries_keys_values(x, rotation)
        if cache is not None:
            k, v = cache.update(k, v, self.layer)
        out, _ = sdpa_attention_forward(self, q, k, v, mask, scaling=self.head_dim**-0.5)
        return self.o_proj(out.flatten(-2))


def rotations(config: Plamo2Config, positions: Tensor) -> Tensor:
    """positions (b, l) to cosines and sines (2, b, 1, l, head_dim / 2), float32.

    Computed anew at every forward: a buffer would be lost where a model is built without memory and filled from a file.
    """
    half = config.hidden_size_per_head // 2
    powers = torch.arange(half, device=positions.device, dtype=torch.float32) / half
    angles = positions[:, None, :, None].float() * config.rope_parameters["rope_theta"] ** -powers
    return torch.stack([angles.cos(), angles.sin()])


def turned(x: Tensor, rotation: Tensor) -> Tensor:
    """(b, heads, l, head_dim): the first half of each head with the second, turned by its position."""
    cos, sin = rotation
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)


class Plamo2MLP(nn.Module):
    """Gated MLP with SiLU; gate rows first."""

    def __init__(self, config: Plamo2Config) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., hidden) to the same."""
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(functional.silu(gate) * up)


class Plamo2Layer(nn.Module):
    """A mixer and an MLP, each between two norms."""

    def __init__(self, config: Plamo2Config, layer: int) -> None:
        super().__init__()
        size, eps = config.hidden_size, config.rms_norm_eps
        self.mixer = (Plamo2Attention if config.is_attention(layer) else Plamo2Mamba)(config, layer)
        self.mlp = Plamo2MLP(config)
        self.pre_mixer_norm = OffsetNorm(size, PRE, eps)
        self.post_mixer_norm = OffsetNorm(size, POST_MIXER, eps)
        self.pre_mlp_norm = OffsetNorm(size, PRE, eps)
        self.post_mlp_norm = OffsetNorm(size, POST_MLP, eps)

    def forward(self, x: Tensor, *mixing: Any) -> Tensor:
        """x (b, l, hidden); `mixing` goes to the mixer."""
        x = x + self.post_mixer_norm(self.mixer(self.pre_mixer_norm(x), *mixing))
        return x + self.post_mlp_norm(self.mlp(self.pre_mlp_norm(x)))


class Plamo2Decoder(nn.Module):
    """The stack of layers; a level of its own because the family's weight names have it."""

    def __init__(self, config: Plamo2Config) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Plamo2Layer(config, i) for i in range(config.num_hidden_layers)])


class Plamo2PreTrainedModel(PreTrainedModel):
    """What transformers asks of a model family."""

    config_class = Plamo2Config
    base_model_prefix = "model"
    _no_split_modules = ("Plamo2Layer",)
    _supports_sdpa = True
    _is_stateful = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, OffsetNorm):
            init.zeros_(module.weight)
        elif isinstance(module, Plamo2Attention):
            init.ones_(module.q_weight)
            init.ones_(module.k_weight)
        elif isinstance(module, Plamo2Mamba):
            for zeros in (module.A_log, module.dt_bias):
                init.zeros_(zeros)
            for ones in (module.D, module.B_norm_weight, module.C_norm_weight, module.dt_norm_weight):
                init.ones_(ones)


class Plamo2Model(Plamo2PreTrainedModel):
    """Embedding, layers, norm."""

    def __init__(self, config: Plamo2Config) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = Plamo2Decoder(config)
        self.norm = OffsetNorm(config.hidden_size, PRE, config.rms_norm_eps)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> BaseModelOutputWithPast:
        """input_ids (b, l), attention_mask (b, seen + l) with 0 for padding; hidden states (b, l, hidden)."""
        x = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        use_cache = self.config.use_cache if use_cache is None else use_cache
        cache = DynamicCache(config=self.config) if use_cache and past_key_values is None else past_key_values
        if position_ids is None:
            seen = 0 if cache is None else cache.get_seq_length()
            position_ids = (torch.arange(x.shape[1], device=x.device) + seen).unsqueeze(0)
        padding = {
            "config": self.config,
            "inputs_embeds": x,
            "attention_mask": attention_mask,
            "past_key_values": cache,
        }
        causal, recurrent = create_causal_mask(**padding), create_recurrent_attention_mask(**padding)
        rotation = rotations(self.config, position_ids)
        for layer in self.layers.layers:
            attends = isinstance(layer.mixer, Plamo2Attention)
            x = layer(x, *((causal, cache, rotation) if attends else (recurrent, cache)))
        return BaseModelOutputWithPast(last_hidden_state=self.norm(x), past_key_values=cache)


class Plamo2ForCausalLM(Plamo2PreTrainedModel, GenerationMixin):
    """The model with its head, which is the embedding where the configuration ties them."""

    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}  # noqa: RUF012 - transformers' own form

    def __init__(self, config: Plamo2Config) -> None:
        super().__init__(config)
        self.model = Plamo2Model(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Logits (b, l, vocabulary), or of the last `logits_to_keep` tokens."""
        body = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
        )
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(body.last_hidden_state[:, kept])
        return CausalLMOutputWithPast(logits=logits, past_key_values=body.past_key_values)
