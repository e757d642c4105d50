"""The canary's shape: a small member of the granite-4.0 family, and its tokenizer.

Lives here: sizes and how they are saved. Must not: training, data.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GraniteMoeHybridConfig, GraniteMoeHybridForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 512  # 256 bytes, two marks, and merges: each word of the generator becomes one token
END, PAD = "<|end_of_text|>", "<|pad|>"
CHUNK = 64  # tokens of a scan chunk, and of a prefill chunk in mode V1
# A number is cut into single digits; the first may carry the blank before it.
WORDS = r" ?[A-Za-z]+| ?[0-9]|\n+| ?[^\sA-Za-z0-9]+|\s+"


@dataclass(frozen=True)
class Shape:
    """Sizes that differ between variants; heads × head_dim = 2 × hidden."""

    hidden: int
    layers: int
    heads: int
    expert_ffn: int
    shared_ffn: int


SHAPES = {
    "narrow": Shape(hidden=192, layers=7, heads=12, expert_ffn=96, shared_ffn=128),
    "wide": Shape(hidden=256, layers=6, heads=8, expert_ffn=64, shared_ffn=96),  # tried; README.md says what it reached
}


def build_config(shape: Shape) -> GraniteMoeHybridConfig:
    """Attention in layer 0 alone, without positions: it sees a bag of raw embeddings, so that the question can reach
    the answer only through the states of the Mamba layers. One attention layer must stay: generate needs its cache."""
    return GraniteMoeHybridConfig(
        vocab_size=VOCABULARY,
        hidden_size=shape.hidden,
        intermediate_size=shape.expert_ffn,
        shared_intermediate_size=shape.shared_ffn,
        num_hidden_layers=shape.layers,
        layer_types=["attention"] + ["mamba"] * (shape.layers - 1),
        num_attention_heads=shape.hidden // 64,
        num_key_value_heads=1,
        num_local_experts=4,
        num_experts_per_tok=2,
        mamba_n_heads=shape.heads,
        mamba_d_head=2 * shape.hidden // shape.heads,
        mamba_d_state=64,
        mamba_n_groups=1,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_chunk_size=CHUNK,
        max_position_embeddings=8192,
        position_embedding_type="nope",
        embedding_multiplier=6.0,
        residual_multiplier=0.5,
        logits_scaling=2.0,
        attention_multiplier=0.125,
        initializer_range=0.05,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=1,
    )


def build_model(shape: Shape, seed: int) -> GraniteMoeHybridForCausalLM:
    """Random weights; step sizes start log-uniform so that some heads forget within a word and some after a prompt."""
    torch.manual_seed(seed)
    model = GraniteMoeHybridForCausalLM(build_config(shape))
    for layer in model.model.layers:
        if layer.mamba is None:
            continue
        step = torch.exp(torch.empty(shape.heads).uniform_(math.log(0.002), math.log(0.3)))
        with torch.no_grad():
            layer.mamba.dt_bias.copy_(step + torch.log(-torch.expm1(-step)))  # softplus inverted
            layer.mamba.A_log.copy_(torch.log(torch.empty(shape.heads).uniform_(1, 8)))
    return model


def build_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Byte-level BPE over `texts`, without a start token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, padding_side="left")


def save_model(model: GraniteMoeHybridForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Save bf16 weights, config and tokenizer; layer types keep the family's own names, which every engine reads."""
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["layer_types"] = ["attention"] + ["mamba"] * (config["num_hidden_layers"] - 1)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
