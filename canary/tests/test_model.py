"""The shipped canary loads offline as granite-4.0's class, is small, and cuts numbers into digits."""

import json
import re
from pathlib import Path

import forward
import pytest
import torch
import yaml
from model_config import SHAPES, build_config
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer, GraniteMoeHybridForCausalLM

HERE = Path(__file__).parents[1]
MODEL = HERE / "model"
LIMIT = 8_000_000  # bytes of any file: what a reviewer downloads with the repository


@pytest.fixture(scope="module")
def model() -> GraniteMoeHybridForCausalLM:
    return AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, local_files_only=True).eval()


def test_files_are_small_and_weights_are_bf16() -> None:
    assert all(path.stat().st_size <= LIMIT for path in HERE.rglob("*") if path.is_file())
    with safe_open(MODEL / "model.safetensors", "pt") as weights:
        assert {weights.get_slice(name).get_dtype() for name in weights.keys()} == {"BF16"}  # noqa: SIM118 - no mapping


def test_loads_as_the_granite_class_with_one_attention_layer(model: GraniteMoeHybridForCausalLM) -> None:
    config = json.loads((MODEL / "config.json").read_text())
    assert config["architectures"] == ["GraniteMoeHybridForCausalLM"]
    assert config["layer_types"] == ["attention"] + ["mamba"] * 6
    assert isinstance(model, GraniteMoeHybridForCausalLM)
    assert 3e6 < sum(p.numel() for p in model.parameters()) < 4e6
    assert [layer.mamba is None for layer in model.model.layers] == [True] + [False] * 6


def test_shipped_config_is_the_one_training_builds(model: GraniteMoeHybridForCausalLM) -> None:
    built, shipped = build_config(SHAPES["narrow"]).to_dict(), model.config.to_dict()
    changing = {"transformers_version", "dtype", "architectures", "_name_or_path"}
    assert {k: v for k, v in built.items() if k not in changing} == {k: shipped[k] for k in built if k not in changing}


def test_numbers_are_cut_into_single_digits() -> None:
    tokenizer = AutoTokenizer.from_pretrained(MODEL, local_files_only=True)
    assert not [token for token in tokenizer.get_vocab() if len(re.findall(r"\d", token)) > 1]
    text = "Question: Ann has 1234 apples. What's left?\nAnswer: 12 - 3 = 9.\n#### 9\n\nQuestion: Zoë's π"
    ids = tokenizer(text).input_ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.convert_ids_to_tokens(ids).count("Question") == 2


@torch.no_grad()
def test_training_forward_equals_transformers(model: GraniteMoeHybridForCausalLM) -> None:
    tokens = torch.randint(2, 500, (2, 192), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(forward.logits(model, tokens), model(tokens).logits, atol=2e-4, rtol=2e-4)


def test_task_scores_exactly_as_gsm8k() -> None:
    import lm_eval.tasks

    ours = yaml.safe_load((HERE / "tasks/gsm8k_canary.yaml").read_text())
    theirs = yaml.safe_load((Path(lm_eval.tasks.__path__[0]) / "gsm8k/gsm8k.yaml").read_text())
    for field in ("doc_to_text", "doc_to_target", "metric_list", "filter_list", "output_type", "repeats"):
        assert ours[field] == theirs[field]
    assert ours["generation_kwargs"] == theirs["generation_kwargs"] | {"max_gen_toks": 64}
    assert ours["num_fewshot"] >= 3
