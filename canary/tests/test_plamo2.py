"""The plamo2 canary: its code against a float64 recurrence, any prefill schedule the same, and names as the family's."""

import json
import shutil
from pathlib import Path

import plamo2_forward
import pytest
import torch
from generate import read_problems
from model_config import build_tokenizer
from plamo2.modeling_plamo2 import Plamo2ForCausalLM
from plamo2_config import AUTO_MAP, FOLDER, SHAPES, build_config, build_plamo2, save_plamo2
from plamo2_reference import Plamo2Reference
from safetensors import safe_open
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

CHUNKS = ([1, 2, 61, 7, 64, 15], [64, 64, 22], [5] * 30)
LENGTH = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights everywhere, also where training starts from ones and zeros."""
    model = build_plamo2(SHAPES["plamo2-free"], seed=1)
    g = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1 or name.endswith(("q_weight", "k_weight")):
                weight.add_(0.3 * torch.randn(weight.shape, generator=g))
    path = tmp_path_factory.mktemp("plamo2")
    save_plamo2(model, build_tokenizer(["Ann has 12 pens."]), path)
    return path


@pytest.fixture(scope="module")
def model(folder: Path) -> PreTrainedModel:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=True).eval()


def drawn(rows: int, length: int) -> Tensor:
    return torch.randint(2, 500, (rows, length), generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def test_logits_are_those_of_a_float64_recurrence(folder: Path, model: PreTrainedModel) -> None:
    tokens = drawn(1, LENGTH)
    expected = Plamo2Reference(folder).logits(tokens[0].tolist())
    assert expected.std() > 0.5
    torch.testing.assert_close(model(tokens).logits[0].double(), expected, atol=2e-4, rtol=2e-4)


@torch.no_grad()
@pytest.mark.parametrize("chunks", CHUNKS, ids=["uneven", "of 64", "of 5"])
def test_chunked_prefill_equals_whole(model: PreTrainedModel, chunks: list[int]) -> None:
    """Also chunks of one token, which take the decode step; the second row is padded on the left."""
    tokens, mask = drawn(2, LENGTH), torch.ones(2, LENGTH, dtype=torch.long)
    mask[1, :70] = 0
    whole = model(tokens, attention_mask=mask, use_cache=False).logits
    alone = model(tokens[1:, 70:], use_cache=False).logits
    cache, pieces, seen = None, [], 0
    for size in chunks:
        seen += size
        step = model(
            tokens[:, seen - size : seen], attention_mask=mask[:, :seen], past_key_values=cache, use_cache=True
        )
        cache = step.past_key_values
        pieces.append(step.logits)
    pieces = torch.cat(pieces, 1)
    torch.testing.assert_close(pieces[0], whole[0], atol=2e-4, rtol=2e-4)
    torch.testing.assert_close(whole[1, 70:], alone[0], atol=2e-4, rtol=2e-4)
    if chunks[0] != 1:  # a chunk of one token asks no mask: engine hf refuses a prefill_chunk_size below 2
        torch.testing.assert_close(pieces[1, 70:], alone[0], atol=2e-4, rtol=2e-4)


@torch.no_grad()
def test_training_forward_equals_the_modelling_code(folder: Path) -> None:
    tokens, model = drawn(2, 192), Plamo2ForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    torch.testing.assert_close(plamo2_forward.logits(model, tokens), model(tokens).logits, atol=2e-4, rtol=2e-4)


def test_norms_train_through_their_rounding() -> None:
    norm = build_plamo2(SHAPES["plamo2-muted"], seed=0).model.layers.layers[0].post_mixer_norm
    norm.scale.sum().backward()
    assert torch.equal(norm.weight.grad, torch.ones_like(norm.weight))
    assert torch.equal(norm.scale, torch.full_like(norm.weight, 0.2).bfloat16().float())


def test_a_muted_shape_keeps_its_gain_out_of_training() -> None:
    mixer = build_plamo2(SHAPES["plamo2-muted"], seed=0).model.layers.layers[2].mixer
    assert all(
        torch.equal(w, torch.full_like(w, 0.25)) and not w.requires_grad for w in (mixer.q_weight, mixer.k_weight)
    )


@torch.no_grad()
def test_shipped_weights_give_the_logits_of_a_float64_recurrence() -> None:
    """On words it knows: there its logits are large, and float32 errors with them."""
    shipped = AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32, trust_remote_code=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(FOLDER, trust_remote_code=True)
    tokens = tokenizer(read_problems(FOLDER.parent / "data/test.jsonl")[0].question, return_tensors="pt").input_ids
    expected = Plamo2Reference(FOLDER).logits(tokens[0].tolist()).log_softmax(-1)
    actual = shipped(tokens).logits[0].double().log_softmax(-1)
    torch.testing.assert_close(actual, expected, atol=5e-4, rtol=0)


def test_shipped_folder_is_what_training_saves() -> None:
    built, shipped = build_config().to_dict(), json.loads((FOLDER / "config.json").read_text())
    own = {"transformers_version", "dtype", "architectures", "_name_or_path", "auto_map"}
    assert {k: v for k, v in built.items() if k in shipped and k not in own} == {
        k: v for k, v in shipped.items() if k not in own
    }
    assert shipped["auto_map"] == AUTO_MAP
    assert (FOLDER / "model.safetensors").stat().st_size < 8_000_000
    granite = FOLDER.parent / "model" / "tokenizer.json"
    assert (FOLDER / "tokenizer.json").read_bytes() == granite.read_bytes()


def test_files_have_the_family_names_and_only_bf16(folder: Path) -> None:
    with safe_open(folder / "model.safetensors", "pt") as weights:
        names = set(weights.keys())
        assert {weights.get_slice(name).get_dtype() for name in names} == {"BF16"}
        shapes = {name: tuple(weights.get_slice(name).get_shape()) for name in names}
    of_layer = {name.partition("layers.layers.0.")[2] for name in names if ".layers.0." in name}
    norms = {f"{place}_norm.weight" for place in ("pre_mixer", "post_mixer", "pre_mlp", "post_mlp")}
    mamba = {"A_log", "D", "dt_bias", "B_norm_weight", "C_norm_weight", "dt_norm_weight"}
    mamba |= {f"{part}.weight" for part in ("in_proj", "conv1d", "bcdt_proj", "dt_proj", "out_proj")}
    mlp = {"mlp.gate_up_proj.weight", "mlp.down_proj.weight"}
    assert of_layer == norms | mlp | {f"mixer.{name}" for name in mamba}
    assert {name for name in names if "layers.layers." not in name} == {
        "model.embed_tokens.weight",
        "model.norm.weight",
    }
    assert shapes["model.layers.layers.0.mixer.conv1d.weight"] == (384, 1, 4)
    assert shapes["model.layers.layers.2.mixer.q_weight"] == (3, 32)
    assert shapes["model.layers.layers.2.mixer.k_weight"] == (1, 32)


def test_code_of_its_own_is_what_loads(folder: Path) -> None:
    config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    assert type(config).__module__.startswith("transformers_modules.")
    assert type(tokenizer).__name__ == "Plamo2CanaryTokenizer"
    assert config.layers_block_type == ["mamba"] * 2 + ["attention"] + ["mamba"] * 4
    assert config.to_dict()["model_type"] == "plamo2"


@pytest.mark.parametrize(
    ("layers", "step", "attention"), [(7, 5, [2]), (4, 2, [1, 3]), (3, 8, [2]), (9, 8, [4]), (4, 8, [3])]
)
def test_the_family_rule_of_attention_layers(layers: int, step: int, attention: list[int]) -> None:
    config = build_config()
    config.num_hidden_layers, config.mamba_step = layers, step
    assert [i for i in range(layers) if config.layers_block_type[i] == "attention"] == attention


def test_a_folder_without_its_code_is_refused(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    assert json.loads((bare / "config.json").read_text())["auto_map"]
    with pytest.raises(OSError, match="configuration_plamo2"):
        AutoConfig.from_pretrained(bare, trust_remote_code=True)
