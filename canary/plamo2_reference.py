"""PLaMo 2 token by token in float64, from the weights file alone: what the modelling code is held against.

Lives here: the plainest form of every layer, and of how the family's files store it. Must not: transformers, caches, chunks;
nothing of plamo2/ is imported, so that a mistake there cannot hide here.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import silu, softplus

PRE, POST_MIXER, POST_MLP = 1.0, 0.2, 5**-1.5


class Plamo2Reference:
    """The model in `folder` (config.json, model.safetensors)."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.stored = load_file(folder / "model.safetensors")

    def logits(self, tokens: list[int]) -> Tensor:
        """Logits after every token: (tokens, vocabulary), float64."""
        config = self.config
        embedding = self.weight("model.embed_tokens.weight")
        x = embedding[tokens]
        for i in range(config["num_hidden_layers"]):
            at = f"model.layers.layers.{i}."
            h = self.offset_norm(x, at + "pre_mixer_norm.weight", PRE)
            attends = i % config["mamba_step"] == config["mamba_step"] // 2
            h = self.attention(h, at + "mixer.") if attends else self.mamba(h, at + "mixer.")
            x = x + self.offset_norm(h, at + "post_mixer_norm.weight", POST_MIXER)
            h = self.offset_norm(x, at + "pre_mlp_norm.weight", PRE)
            gate, up = (h @ self.weight(at + "mlp.gate_up_proj.weight").T).chunk(2, dim=-1)
            h = (silu(gate) * up) @ self.weight(at + "mlp.down_proj.weight").T
            x = x + self.offset_norm(h, at + "post_mlp_norm.weight", POST_MLP)
        return self.offset_norm(x, "model.norm.weight", PRE) @ embedding.T

    def weight(self, name: str) -> Tensor:
        return self.stored[name].double()

    def norm(self, x: Tensor, scale: Tensor) -> Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"]).sqrt() * scale

    def offset_norm(self, x: Tensor, name: str, offset: float) -> Tensor:
        """The stored weight lacks the offset; the sum is made in the file's dtype, as vLLM makes it."""
        return self.norm(x, (self.stored[name] + offset).double())

    def mamba(self, x: Tensor, at: str) -> Tensor:
        """One state of (heads, head_dim, state), carried from token to token."""
        config = self.config
        heads, width, n = config["mamba_num_heads"], config["hidden_size_per_head"], config["mamba_d_state"]
        rows = self.weight(at + "in_proj.weight").view(heads, 2, width, -1)  # head by head: gate, then channels
        gates, inputs = (torch.einsum("td,hpd->thp", x, rows[:, part]) for part in (0, 1))
        taps = self.weight(at + "conv1d.weight").view(heads, width, -1)
        project, steps_of = self.weight(at + "bcdt_proj.weight"), self.weight(at + "dt_proj.weight")
        decay, skip = -self.weight(at + "A_log").exp(), self.weight(at + "D")
        state, out = torch.zeros(heads, width, n, dtype=torch.float64), []
        for t in range(len(x)):
            seen = inputs[max(0, t + 1 - taps.shape[-1]) : t + 1]
            h = silu(torch.einsum("thp,hpt->hp", seen, taps[..., -len(seen) :]))
            B, C, low = (project @ h.flatten()).split([n, n, project.shape[0] - 2 * n])
            B, C = self.norm(B, self.weight(at + "B_norm_weight")), self.norm(C, self.weight(at + "C_norm_weight"))
            low = self.norm(low, self.weight(at + "dt_norm_weight"))
            dt = softplus(steps_of @ low + self.weight(at + "dt_bias"))
            state = state * (dt * decay).exp()[:, None, None] + (dt[:, None] * h)[..., None] * B
            y = state @ C + skip[:, None] * h
            out.append((y * silu(gates[t])).flatten())
        return torch.stack(out) @ self.weight(at + "out_proj.weight").T

    def attention(self, x: Tensor, at: str) -> Tensor:
        """Every query against all keys up to its own; positions turn pairs (i, i + head_dim / 2)."""
        heads, kv, width = (
            self.config[k] for k in ("num_attention_heads", "num_key_value_heads", "hidden_size_per_head")
        )
        qkv = (x @ self.weight(at + "qkv_proj.weight").T).view(len(x), heads + 2 * kv, width)
        q = self.rotated(self.norm(qkv[:, :heads], self.weight(at + "q_weight")))
        k = self.rotated(self.norm(qkv[:, heads : heads + kv], self.weight(at + "k_weight")))
        k, v = (t.repeat_interleave(heads // kv, dim=1) for t in (k, qkv[:, heads + kv :]))
        scores = torch.einsum("qhd,khd->hqk", q, k) / width**0.5
        hidden = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
        out = torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, -torch.inf).softmax(-1), v)
        return out.flatten(1) @ self.weight(at + "o_proj.weight").T

    def rotated(self, x: Tensor) -> Tensor:
        """x (tokens, heads, head_dim), token t at position t: each pair as a complex number, turned."""
        half = x.shape[-1] // 2
        theta = self.config["rope_parameters"]["rope_theta"]
        speed = theta ** -(torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(len(x), dtype=torch.float64)[:, None, None] * speed
        turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angle), angle)
        return torch.cat([turned.real, turned.imag], dim=-1)
