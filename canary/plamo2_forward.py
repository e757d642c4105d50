"""A forward pass over the plamo2 canary's weights for training, in matrix products and without a cache.

Lives here: the same function as Plamo2ForCausalLM in a form that torch.compile makes fast; a test holds the two against
each other. Must not: sampling, evaluation (that is the modelling code's).
"""

import torch
from forward import scan
from plamo2.modeling_plamo2 import Plamo2Attention, Plamo2ForCausalLM, Plamo2Mamba, rotations
from torch import Tensor
from torch.nn import functional


def logits(model: Plamo2ForCausalLM, tokens: Tensor) -> Tensor:
    """tokens (batch, length), length a multiple of the scan's chunk → float32 logits (batch, length, vocabulary)."""
    body = model.model
    x = body.embed_tokens(tokens)
    rotation = rotations(model.config, torch.arange(tokens.shape[1], device=tokens.device).unsqueeze(0))
    for layer in body.layers.layers:
        h = layer.pre_mixer_norm(x)
        mixed = attend(layer.mixer, h, rotation) if isinstance(layer.mixer, Plamo2Attention) else mamba(layer.mixer, h)
        x = x + layer.post_mixer_norm(mixed.float())
        x = x + layer.post_mlp_norm(layer.mlp(layer.pre_mlp_norm(x)).float())
    return functional.linear(body.norm(x), body.embed_tokens.weight).float()


def attend(module: Plamo2Attention, x: Tensor, rotation: Tensor) -> Tensor:
    """Causal attention over one row's tokens."""
    q, k, v = module.queries_keys_values(x, rotation)
    k, v = (t.expand(-1, q.shape[1], -1, -1) for t in (k.to(v.dtype), v))
    out = functional.scaled_dot_product_attention(q.to(v.dtype), k, v, is_causal=True, scale=module.head_dim**-0.5)
    return module.o_proj(out.transpose(1, 2).flatten(-2))


def mamba(module: Plamo2Mamba, x: Tensor) -> Tensor:
    """Projection, convolution of width 4 as shifted products, scan, gate, projection."""
    b, length, _ = x.shape
    gate, channels = module.gate_and_channels(x)
    padded = functional.pad(channels, (0, 0, module.width - 1, 0))
    weight = module.conv1d.weight.squeeze(1)
    channels = functional.silu(sum(padded[:, i : i + length] * weight[:, i] for i in range(module.width)))
    steps, B, C = module.steps_b_c(channels)
    dt = functional.softplus(steps.float() + module.dt_bias)
    h = channels.view(b, length, module.heads, module.head_dim)
    y = scan(h, dt, -torch.exp(module.A_log.float()), B, C, module.chunk_size) + h * module.D[:, None]
    return module.out_proj(y.reshape(b, length, -1).float() * functional.silu(gate.float()))
