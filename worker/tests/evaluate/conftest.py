"""A tiny hybrid, its tokenizer, its task and its data, made on the spot; and the means to run the child on them.

These tests run in the evaluation environment. `driftline` is not installed there: its contracts are read from the
source tree, only here in the tests.
"""

import json
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "worker"), str(ROOT / "compare")]

import torch  # noqa: E402
from driftline.contracts.channel import LINE  # noqa: E402
from driftline_worker.children.hf_engine.observed_lm import ObservedLM  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402
from transformers import (  # noqa: E402
    GraniteMoeHybridConfig,
    GraniteMoeHybridForCausalLM,
    PreTrainedTokenizerFast,
)
from transformers.models.granitemoehybrid import modeling_granitemoehybrid as granite  # noqa: E402

KERNELS = ROOT / "kernels" / "src"
REPLACED = ("causal_conv1d_fn", "causal_conv1d_update", "mamba2_chunk_scan", "mamba2_selective_state_update")
CHUNK = 16
QUESTIONS = 24
TASK = r"""
task: tiny
dataset_path: json
output_type: generate_until
training_split: train
fewshot_split: train
test_split: test
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_target: "{{answer}}"
num_fewshot: 2
generation_kwargs: {until: ["Question:", "</s>"], do_sample: false, temperature: 0.0}
filter_list:
  - name: strict-match
    filter: [{function: regex, regex_pattern: '#### (\-?[0-9\.\,]+)'}, {function: take_first}]
  - name: flexible-extract
    filter:
      - {function: regex, group_select: -1, regex_pattern: '(-?[$0-9.,]{2,})|(-?[0-9]+)'}
      - {function: take_first}
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
    ignore_case: true
    regexes_to_ignore: [',', '\$', '(?s).*#### ', '\.$']
metadata: {version: 2.0}
"""


def pytest_configure(config: pytest.Config) -> None:
    torch.set_num_threads(1)
    for warning in ("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"):
        config.addinivalue_line(
            "filterwarnings", warning
        )  # lm-eval, datasets and transformers raise them among themselves


@dataclass(frozen=True)
class Assets:
    """Files of the tiny lane."""

    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "model"

    def spec(self, mode: str = "V1", *, doc_ids: list[int] | None = None, **changes: Any) -> dict[str, Any]:
        """A child's spec; `changes` replace engine arguments or, where a key is one of the spec's own, the spec's."""
        spec: dict[str, Any] = {
            "import_dir": str(KERNELS),
            "lane": {
                "name": f"tiny {mode}", "model": {"name": "tiny", "path": "tiny", "hub_id": None, "revision": None},
                "engine": "hf", "mode": mode, "backend": "torch", "task": {"name": "tiny"}, "questions": QUESTIONS,
                "engine_arguments": {"dtype": "float32", "prefill_chunk_size": CHUNK, "max_gen_toks": 12},
                "environment": {}, "gpu_type": None,
            },
            "model_path": str(self.model), "task_yaml": str(self.folder / "tiny.yaml"),
            "train_path": str(self.folder / "train.jsonl"), "test_path": str(self.folder / "test.jsonl"),
            "doc_ids": doc_ids or [5, 2, 19, 0, 11, 7, 23, 14], "block": 5, "batch_size": 3, "threads": 1,
        }  # fmt: skip
        for key, value in changes.items():
            (spec if key in spec else spec["lane"]["engine_arguments"])[key] = value
        return spec


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Assets:
    folder = tmp_path_factory.mktemp("tiny")
    rows = {"train": _rows(16, seed=1), "test": _rows(QUESTIONS, seed=2)}
    for name, split in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in split))
    (folder / "tiny.yaml").write_text(TASK)
    texts = [row["question"] + row["answer"] for split in rows.values() for row in split]
    _tokenizer(texts).save_pretrained(folder / "model")
    _model().save_pretrained(folder / "model")
    return Assets(folder)


def _rows(count: int, *, seed: int) -> list[dict[str, str]]:
    draw = random.Random(seed)  # noqa: S311 - questions, not secrets
    names = ["Ann", "Ben", "Cara", "Dan"]
    rows = []
    for _ in range(count):
        a, b = draw.randint(1, 99), draw.randint(1, 9)
        more = " ".join(f"{draw.choice(names)} sees {draw.randint(1, 9)} hens." for _ in range(draw.randint(0, 5)))
        question = f"{draw.choice(names)} has {a} eggs and buys {b} more. {more} How many eggs are there?"
        rows.append({"question": question, "answer": f"{a} + {b} = {a + b}\n#### {(a + b) % 10}"})
    return rows


def _tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<|end|>", "<|pad|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|pad|>")


def _model() -> GraniteMoeHybridForCausalLM:
    """Random weights large enough that answers differ from question to question and depend on the carried state."""
    torch.manual_seed(3)
    config = GraniteMoeHybridConfig(
        vocab_size=320, hidden_size=32, intermediate_size=16, shared_intermediate_size=32, num_hidden_layers=3,
        layer_types=["attention", "mamba", "mamba"], num_attention_heads=2, num_key_value_heads=1, num_local_experts=4,
        num_experts_per_tok=2, mamba_n_heads=4, mamba_d_head=16, mamba_d_state=16, mamba_n_groups=2, mamba_d_conv=4,
        mamba_expand=2, mamba_chunk_size=CHUNK, max_position_embeddings=512, position_embedding_type="rope",
        embedding_multiplier=6.0, initializer_range=0.2, tie_word_embeddings=True, eos_token_id=0, pad_token_id=1,
        bos_token_id=None,
    )  # fmt: skip
    model = GraniteMoeHybridForCausalLM(config)
    for layer in model.model.layers[1:]:
        with torch.no_grad():
            layer.mamba.A_log.fill_(-4.0)  # heads remember a whole prompt
            layer.mamba.D.zero_()  # and an answer depends on what they remember
    return model


@pytest.fixture(scope="session")
def plain_lm(assets: Assets) -> ObservedLM:
    """The tiny model under lm-eval; patched only by tests that ask for `unpatched` too."""
    return ObservedLM(pretrained=str(assets.model), dtype="float32", device="cpu", batch_size=4, max_length=512)


@pytest.fixture
def unpatched() -> Iterator[None]:
    """transformers' own functions before and after the test, and no kernels imported."""
    before = {name: getattr(granite, name) for name in REPLACED}
    _forget_kernels()
    path = list(sys.path)
    yield
    sys.path[:] = path
    _forget_kernels()
    for name, function in before.items():
        setattr(granite, name, function)


def _forget_kernels() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mamba2_varlen"]:
        del sys.modules[name]


@pytest.fixture
def changed_kernels(tmp_path: Path) -> Callable[[str], Path]:
    """An import folder with this project's kernels and `code` at the end of their package, as a commit might."""

    def make(code: str) -> Path:
        folder = tmp_path / "changed"
        shutil.copytree(
            KERNELS / "mamba2_varlen", folder / "mamba2_varlen", ignore=shutil.ignore_patterns("__pycache__")
        )
        with (folder / "mamba2_varlen" / "__init__.py").open("a") as file:
            file.write(f"\n{code}\n")
        return folder

    return make


@pytest.fixture(scope="session")
def received() -> Callable[[Callable[[int], Any]], list[Any]]:
    """Call a writer with a pipe's descriptor and get the lines it wrote, validated by the contract."""
    return _received


def _received(write: Callable[[int], Any]) -> list[Any]:
    reading, writing = os.pipe()
    lines: list[bytes] = []

    def read() -> None:
        with os.fdopen(reading, "rb") as pipe:
            lines.extend(pipe.readlines())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        write(writing)
    finally:
        os.close(writing)
        reader.join()
    return [LINE.validate_json(line) for line in lines]
