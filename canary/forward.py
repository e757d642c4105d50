"""A forward pass over a canary's weights for training, in matrix products and without a cache.

Lives here: the same function as transformers' GraniteMoeHybridForCausalLM in a form that torch.compile makes fast; a
test holds the two against each other. Must not: sampling, evaluation (that is transformers' own code).
"""

import torch
from torch import Tensor
from torch.nn import functional
from transformers import GraniteMoeHybridForCausalLM


def logits(model: GraniteMoeHybridForCausalLM, tokens: Tensor) -> Tensor:
    """tokens (batch, length), length a multiple of the scan's chunk → float32 logits (batch, length, vocabulary)."""
    config, body = model.config, model.model
    x = body.embed_tokens(tokens) * config.embedding_multiplier
    for layer in body.layers:
        h = norm(x, layer.input_layernorm)
        mixed = attend(layer.self_attn, h) if layer.mamba is None else mamba(layer.mamba, h)
        x = x + mixed * config.residual_multiplier
        h = norm(x, layer.post_attention_layernorm)
        x = x + (experts(layer.block_sparse_moe, h) + layer.shared_mlp(h)) * config.residual_multiplier
    return (functional.linear(norm(x, body.norm), body.embed_tokens.weight) / config.logits_scaling).float()


def norm(x: Tensor, module: torch.nn.Module) -> Tensor:
    """Root-mean-square norm in float32."""
    x = x.float()
    return module.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + module.variance_epsilon)


def attend(module: torch.nn.Module, x: Tensor) -> Tensor:
    """Causal attention without positions."""
    b, length, _ = x.shape
    projections = (module.q_proj, module.k_proj, module.v_proj)
    q, k, v = (p(x).view(b, length, -1, module.head_dim).transpose(1, 2) for p in projections)
    k, v = (t.expand(-1, q.shape[1], -1, -1) for t in (k, v))
    out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=module.scaling)
    return module.o_proj(out.transpose(1, 2).reshape(b, length, -1))


def experts(module: torch.nn.Module, x: Tensor) -> Tensor:
    """All experts in two products, weighted by the router's top choices: cheaper than dispatch at this size."""
    router, bank = module.router, module.experts
    top, index = functional.linear(x, router.weight).float().topk(router.top_k, dim=-1)
    gate = torch.zeros(*x.shape[:-1], router.num_experts, device=x.device).scatter(-1, index, torch.softmax(top, -1))
    h = functional.linear(x, bank.gate_up_proj.flatten(0, 1)).unflatten(-1, (router.num_experts, -1))
    a, b = h.chunk(2, dim=-1)
    h = (functional.silu(a) * b * gate[..., None]).flatten(-2)
    return functional.linear(h, bank.down_proj.transpose(1, 2).reshape(-1, x.shape[-1]).t())


def mamba(module: torch.nn.Module, x: Tensor) -> Tensor:
    """Projection, convolution of width 4 as shifted products, scan, gated norm, projection."""
    b, length, _ = x.shape
    inner, n, width = module.intermediate_size, module.ssm_state_size, module.conv_kernel_size
    gate, conv, dt = module.in_proj(x).split([inner, inner + 2 * n, module.num_heads], dim=-1)
    padded = functional.pad(conv, (0, 0, width - 1, 0))
    weight = module.conv1d.weight.squeeze(1)
    conv = functional.silu(sum(padded[:, i : i + length] * weight[:, i] for i in range(width)) + module.conv1d.bias)
    h, B, C = conv.split([inner, n, n], dim=-1)
    dt = functional.softplus(dt.float() + module.dt_bias)
    h = h.view(b, length, module.num_heads, module.head_dim)
    y = scan(h, dt, -torch.exp(module.A_log.float()), B, C, module.chunk_size) + h * module.D[:, None]
    y = y.reshape(b, length, inner).float() * functional.silu(gate.float())
    return module.out_proj(norm(y, module.norm))


def scan(x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, chunk: int) -> Tensor:
    """The chunked SSD scan for one group, without D. x (b,l,h,p), dt (b,l,h), A (h), B and C (b,l,n) → (b,l,h,p)."""
    b, length, heads, _ = x.shape
    shape = (b, length // chunk, chunk)
    cum = (dt * A).view(*shape, heads).transpose(2, 3).cumsum(-1)  # b c h q
    v = (x * dt[..., None]).view(*shape, heads, -1).transpose(2, 3)  # b c h q p
    B, C = B.view(*shape, -1), C.view(*shape, -1)
    causal = torch.ones(chunk, chunk, dtype=torch.bool, device=x.device).tril()
    decay = torch.exp((cum[..., :, None] - cum[..., None, :]).masked_fill(~causal, -torch.inf))
    y = ((C @ B.transpose(-1, -2))[:, :, None] * decay).to(x.dtype) @ v.to(x.dtype)
    to_end = torch.exp(cum[..., -1:] - cum)[..., None]
    states = (v * to_end).to(x.dtype).transpose(-1, -2) @ B[:, :, None]  # b c h p n
    start = [torch.zeros_like(states[:, 0], dtype=torch.float32)]
    for c in range(shape[1] - 1):
        start.append(start[-1] * torch.exp(cum[:, c, :, -1])[..., None, None] + states[:, c])
    carried = C[:, :, None] @ torch.stack(start, 1).to(x.dtype).transpose(-1, -2)
    y = y + carried * torch.exp(cum)[..., None]
    return y.transpose(2, 3).reshape(x.shape)
