"""The plamo2 canary's sizes, its random start, and how it is saved with the code that `trust_remote_code` loads.

Lives here: what differs between variants. Must not: layers (plamo2/), training, data; the tokenizer is model_config.py's.
"""

import json
import math
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from model_config import CHUNK, VOCABULARY
from plamo2.configuration_plamo2 import Plamo2Config
from plamo2.modeling_plamo2 import Plamo2Attention, Plamo2ForCausalLM, Plamo2Mamba
from transformers import PreTrainedTokenizerFast

FOLDER = Path(__file__).parent / "plamo2"
CODE = ("configuration_plamo2.py", "modeling_plamo2.py", "tokenization_plamo2.py")
AUTO_MAP = {
    "AutoConfig": "configuration_plamo2.Plamo2Config",
    "AutoModelForCausalLM": "modeling_plamo2.Plamo2ForCausalLM",
}
TOKENIZER = "Plamo2CanaryTokenizer"
EMBEDDING_STD = 0.1


@dataclass(frozen=True)
class Plamo2Shape:
    """What differs between variants. `attention_gain` fixes the weights of the query and key norms; None trains them."""

    attention_gain: float | None


SHAPES = {
    "plamo2-free": Plamo2Shape(attention_gain=None),
    # Norms bound queries and keys: with this gain no score passes 0.36, and attention stays close to a mean of what it
    # sees, so that nearly all of an answer hangs on the states of the Mamba layers. Tried; README.md says what it reached.
    "plamo2-muted": Plamo2Shape(attention_gain=0.25),
}
SHIPPED = "plamo2-free"


def build_config() -> Plamo2Config:
    """One attention layer, the third of seven: the family's rule lets none stand first."""
    return Plamo2Config(
        vocab_size=VOCABULARY,
        mamba_chunk_size=CHUNK,
        num_hidden_layers=7,
        mamba_step=5,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=1,
    )


def build_plamo2(shape: Plamo2Shape, seed: int) -> Plamo2ForCausalLM:
    """Random weights; step sizes start log-uniform so that some heads forget within a word and some after a prompt."""
    torch.manual_seed(seed)
    model = Plamo2ForCausalLM(build_config())
    with torch.no_grad():
        model.model.embed_tokens.weight.normal_(0, EMBEDDING_STD)
        for layer in model.model.layers.layers:
            if isinstance(layer.mixer, Plamo2Mamba):
                start_steps(layer.mixer)
            elif shape.attention_gain is not None:
                fix_gain(layer.mixer, shape.attention_gain)
    return model


def start_steps(mixer: Plamo2Mamba) -> None:
    """Draw step sizes and decays in place."""
    step = torch.exp(torch.empty(mixer.heads).uniform_(math.log(0.002), math.log(0.3)))
    mixer.dt_bias.copy_(step + torch.log(-torch.expm1(-step)))  # softplus inverted
    mixer.A_log.copy_(torch.log(torch.empty(mixer.heads).uniform_(1, 8)))


def fix_gain(mixer: Plamo2Attention, gain: float) -> None:
    """Set the weights of the query and key norms, and keep them out of training."""
    for weight in (mixer.q_weight, mixer.k_weight):
        weight.fill_(gain)
        weight.requires_grad_(requires_grad=False)


def save_plamo2(model: Plamo2ForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Save bf16 weights, config, tokenizer and the code that they name."""
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    rewrite(folder / "config.json", {"auto_map": AUTO_MAP})
    named = {"AutoTokenizer": [None, f"tokenization_plamo2.{TOKENIZER}"]}
    rewrite(folder / "tokenizer_config.json", {"auto_map": named, "tokenizer_class": TOKENIZER})
    for name in CODE:
        if folder.resolve() != FOLDER:
            shutil.copy(FOLDER / name, folder / name)


def rewrite(path: Path, fields: dict) -> None:
    """Put `fields` into a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | fields, indent=2, sort_keys=True) + "\n")
