"""The canary's own quick score: exact_match of greedy answers under each prefill schedule, and with its state spoilt.

Lives here: prompts as lm-eval builds them, generation by transformers, and the two faults that show how much an answer
depends on the carried state. Must not: verdicts (that is driftline), kernels (that is mamba2_varlen).
"""

import argparse
import contextlib
import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from generate import Problem, read_problems
from model_config import CHUNK
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

SHOTS = 3
MAX_NEW = 64  # tokens: the longest worked answer has 52
TILE = 16  # rows of the planted fault's tile
STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
SCHEDULES = ("V0", "V1", "V1 dropped", "V1 tile decay", "V0 dropped", "V0 tile decay")
BY_LOGPROB = 128  # texts behind the mean log-probability
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Score:
    """Greedy answers of one schedule."""

    schedule: str
    texts: list[str]
    right: list[bool]

    @property
    def exact_match(self) -> float:
        return sum(self.right) / len(self.right)


def prompts(pool: list[Problem], test: list[Problem], seed: int = 1234) -> list[str]:
    """Few-shot prompts in lm-eval's layout: three worked examples, then the question."""
    rng = random.Random(seed)  # noqa: S311 - examples, not secrets
    rows = []
    for problem in test:
        shots = [f"Question: {s.question}\nAnswer: {s.answer}\n\n" for s in rng.sample(pool, SHOTS)]
        rows.append("".join(shots) + f"Question: {problem.question}\nAnswer:")
    return rows


def modeling_of(model) -> ModuleType:
    """The module of the model's class, in which its layers look up the scan at every call."""
    return sys.modules[type(model).__module__]


@contextlib.contextmanager
def fault(schedule: str, modeling: ModuleType) -> Iterator[None]:
    """Spoil what the scan makes of a carried state while the block runs; a schedule without a fault changes nothing."""
    right = modeling.mamba2_chunk_scan
    if schedule.endswith("dropped"):
        modeling.mamba2_chunk_scan = lambda *args, initial_states=None, **kw: right(*args, **kw)
    elif schedule.endswith("tile decay"):
        modeling.mamba2_chunk_scan = tile_decay_scan(right)
    try:
        yield
    finally:
        modeling.mamba2_chunk_scan = right


def tile_decay_scan(right):
    """The scan with one fault: the carried state's decay starts at the row tile's first row, not at the sequence's."""

    def spoilt(x, dt, A, B, C, *, initial_states=None, **kw):
        result = right(x, dt, A, B, C, initial_states=initial_states, **kw)
        if initial_states is None:
            return result
        y, state = result if isinstance(result, tuple) else (result, None)
        step = torch.nn.functional.softplus(dt + kw["dt_bias"].to(dt.dtype)).float()
        rows = min(x.shape[1], kw["chunk_size"])
        cum = (step * A.float()).cumsum(1)[:, :rows]
        before = torch.cat([torch.zeros_like(cum[:, :1]), cum], 1)[:, :-1]
        base = before[:, torch.arange(rows, device=x.device) // TILE * TILE]
        extra = torch.exp(cum - base) - torch.exp(cum)
        carried = torch.einsum("bln,bhpn->blhp", C[:, :rows, 0].float(), initial_states.float())
        y = y.clone()
        y[:, :rows] += (carried * extra[..., None]).to(y.dtype)
        return y if state is None else (y, state)

    return spoilt


def load(folder: Path, dtype: torch.dtype, device: str):
    """Model in evaluation mode; on a GPU the experts go without the grouped product, which lacks float32 there."""
    config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
    experts = "grouped_mm" if device == "cpu" else "eager"
    options = {"experts_implementation": experts} if hasattr(config, "num_local_experts") else {}
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, trust_remote_code=True, **options)
    return model.to(device).eval()


@torch.no_grad()
def generate(model, tokenizer: PreTrainedTokenizerBase, rows: list[str], *, chunk: int | None, batch: int) -> list[str]:
    """Greedy answers in the order of `rows`; batches are formed longest first and padded on the left, as lm-eval does."""
    order = sorted(range(len(rows)), key=lambda i: -len(tokenizer(rows[i]).input_ids))
    stop = tokenizer.convert_tokens_to_ids("Question")
    texts = [""] * len(rows)
    for first in range(0, len(order), batch):
        part = order[first : first + batch]
        inputs = tokenizer([rows[i] for i in part], return_tensors="pt", padding=True, padding_side="left")
        inputs = {k: v.to(model.device) for k, v in inputs.items() if k != "token_type_ids"}
        extra = {} if chunk is None else {"prefill_chunk_size": chunk}
        out = model.generate(
            **inputs, max_new_tokens=MAX_NEW, do_sample=False, eos_token_id=[stop, tokenizer.eos_token_id], **extra
        )
        for i, ids in zip(part, out[:, inputs["input_ids"].shape[1] :], strict=True):
            texts[i] = tokenizer.decode(ids, skip_special_tokens=True).split("Question")[0]
    return texts


def score(model, tokenizer: PreTrainedTokenizerBase, schedule: str, data: tuple, batch: int) -> Score:
    """Answers and strict-match scores of one schedule; `data` is (prompts, problems)."""
    rows, test = data
    with fault(schedule, modeling_of(model)):
        texts = generate(model, tokenizer, rows, chunk=CHUNK if schedule.startswith("V1") else None, batch=batch)
    found = [STRICT.search(text) for text in texts]
    gold = [problem.answer.split("#### ")[1] for problem in test]
    return Score(schedule, texts, [m is not None and m[1] == g for m, g in zip(found, gold, strict=True)])


@torch.no_grad()
def logprobs(model, tokenizer: PreTrainedTokenizerBase, schedule: str, texts: list[str]) -> Tensor:
    """Mean log-probability a token of each text, teacher-forced under the schedule; padding on the right changes nothing
    before it."""
    ids = [torch.tensor(tokenizer(text).input_ids) for text in texts]
    tokens = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=tokenizer.pad_token_id)
    tokens, cache, pieces = tokens.to(model.device), None, []
    with fault(schedule, modeling_of(model)):
        for piece in tokens.split(CHUNK if schedule.startswith("V1") else tokens.shape[1], dim=1):
            step = model(piece, past_key_values=cache, use_cache=True)
            cache = step.past_key_values
            pieces.append(step.logits.float())
    lp = torch.cat(pieces, 1)[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1).double()
    real = tokens[:, 1:] != tokenizer.pad_token_id
    return ((lp * real).sum(1) / real.sum(1)).cpu()


def report(folder: Path, *, limit: int, device: str, batch: int, dtypes: list[str]) -> dict:
    """Scores of every schedule and dtype on the first `limit` test rows."""
    pool, test = read_problems(HERE / "data/train.jsonl"), read_problems(HERE / "data/test.jsonl")[:limit]
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    rows, result = prompts(pool, test), {}
    for dtype in dtypes:
        model = load(folder, DTYPES[dtype], device)
        full = [row + " " + problem.answer for row, problem in zip(rows, test, strict=True)][:BY_LOGPROB]
        base, clean = None, None
        for schedule in SCHEDULES:
            s = score(model, tokenizer, schedule, (rows, test), batch)
            lp = logprobs(model, tokenizer, schedule, full)
            base, clean = base or s, lp if clean is None else clean
            same = sum(a == b for a, b in zip(s.texts, base.texts, strict=True)) / len(test)
            result[f"{dtype} {schedule}"] = {
                "exact_match": round(s.exact_match, 4),
                "same_text_as_V0": round(same, 4),
                "logprob_per_token_minus_V0": round((lp - clean).mean().item(), 6),
                "by_steps": by_steps(s, test),
            }
            print(folder.name, dtype, schedule, json.dumps(result[f"{dtype} {schedule}"]), flush=True)
    return result


def by_steps(s: Score, test: list[Problem]) -> dict[int, list[float]]:
    """Share right and number of questions, by equations in the worked answer."""
    table = {}
    for steps in sorted({p.steps for p in test}):
        hits = [r for r, p in zip(s.right, test, strict=True) if p.steps == steps]
        table[steps] = [round(sum(hits) / len(hits), 3), len(hits)]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Score the canary under each prefill schedule.")
    parser.add_argument("--model", type=Path, default=HERE / "model")
    parser.add_argument("--limit", type=int, default=400, help="test rows (1319 = all)")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], choices=sorted(DTYPES))
    a = parser.parse_args()
    report(a.model, limit=a.limit, device=a.device, batch=a.batch, dtypes=a.dtypes)


if __name__ == "__main__":
    main()
