"""Train a canary: `python canary/train.py --out DIR` on one GPU; `--steps 3 --batch 4 --device cpu` tries the path.

Lives here: the training loop and its constants. Must not: the distribution of problems (generate.py), sizes
(model_config.py, plamo2_config.py).
"""

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import forward
import numpy as np
import plamo2_config
import plamo2_forward
import torch
from evaluate import report
from generate import SEED, Problem, fixed_sets, stream
from model_config import SHAPES, build_model, build_tokenizer, save_model
from plamo2_config import build_plamo2, save_plamo2
from transformers import PreTrainedModel, PreTrainedTokenizerFast

LENGTH = 384  # tokens of a training row: three shots, a question and its answer, six chunks of the scan
QUESTION_WEIGHT = 0.1  # of a question's token in the loss, against 1 for an answer's
WARMUP = 200  # steps
SHARD = 8  # steps of data that one data process makes at a time


@dataclass(frozen=True)
class Plan:
    """What one training run needs besides the code; every field is a command-line option."""

    shape: str
    steps: int
    batch: int
    rate: float
    seed: int
    device: str
    workers: int


@dataclass(frozen=True)
class Family:
    """What a family of models brings to its training: random weights from (shape, seed), logits, and saving."""

    build: Callable[[str, int], PreTrainedModel]
    logits: Callable[[PreTrainedModel, torch.Tensor], torch.Tensor]
    save: Callable[[PreTrainedModel, PreTrainedTokenizerFast, Path], None]


GRANITE = Family(lambda shape, seed: build_model(SHAPES[shape], seed), forward.logits, save_model)
PLAMO2 = Family(lambda shape, seed: build_plamo2(plamo2_config.SHAPES[shape], seed), plamo2_forward.logits, save_plamo2)
FAMILIES = dict.fromkeys(SHAPES, GRANITE) | dict.fromkeys(plamo2_config.SHAPES, PLAMO2)
"""The family of each shape."""


class ShardMaker:
    """Makes training rows in a data process; holds the tokenizer and the questions that must not appear."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, rows: int, seed: int) -> None:
        self.tokenizer, self.rows, self.seed = tokenizer, rows, seed
        self.banned = frozenset(p.question for part in fixed_sets() for p in part)

    def __call__(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        """Token ids and answer marks, both (rows, LENGTH + 1); the shard number decides the content."""
        problems = stream(self.seed + shard, self.banned)
        ids = np.zeros((self.rows, LENGTH + 1), np.uint16)
        marks = np.zeros((self.rows, LENGTH + 1), bool)
        for row in range(self.rows):
            tokens, answer = self.row(problems)
            ids[row], marks[row] = tokens[: LENGTH + 1], answer[: LENGTH + 1]
        return ids, marks

    def row(self, problems: Iterator[Problem]) -> tuple[list[int], list[bool]]:
        tokens: list[int] = []
        answer: list[bool] = []
        while len(tokens) <= LENGTH:
            part = list(islice(problems, 6))
            texts = [t for p in part for t in (f"Question: {p.question}\nAnswer:", f" {p.answer}\n\n")]
            for i, encoded in enumerate(self.tokenizer._tokenizer.encode_batch(texts)):
                tokens += encoded.ids
                answer += [i % 2 == 1] * len(encoded.ids)
        return tokens, answer


def batches(plan: Plan, tokenizer: PreTrainedTokenizerFast) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Fresh rows for every step, made ahead by data processes; the same seed gives the same rows."""
    maker = ShardMaker(tokenizer, plan.batch * SHARD, SEED + 1 + plan.seed * 1_000_000)
    shards = range(1, 1 + math.ceil(plan.steps / SHARD))
    with multiprocessing.get_context("spawn").Pool(plan.workers) as pool:
        for ids, marks in pool.imap(maker, shards):
            for part in range(SHARD):
                rows = slice(part * plan.batch, (part + 1) * plan.batch)
                yield torch.from_numpy(ids[rows].astype(np.int64)), torch.from_numpy(marks[rows])


def rate_at(step: int, plan: Plan) -> float:
    """Linear warm-up, then a cosine to a fiftieth."""
    warm = min(1.0, (step + 1) / WARMUP)
    return plan.rate * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / plan.steps)))


def optimizer_for(model: PreTrainedModel, plan: Plan) -> torch.optim.AdamW:
    """AdamW; matrices decay, vectors (norms, steps, decays of heads) do not. plamo2's norms of queries and keys hold one
    vector a head."""
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    matrices = [p for name, p in trained if p.dim() > 1 and not name.endswith(("q_weight", "k_weight"))]
    vectors = [p for name, p in trained if p.dim() <= 1 or name.endswith(("q_weight", "k_weight"))]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=plan.rate, betas=(0.9, 0.95), fused=plan.device != "cpu")


def losses(compiled, model: PreTrainedModel, ids: torch.Tensor, marks: torch.Tensor) -> tuple:
    """Weighted loss, answer loss and share of answers that are right token for token under teacher forcing."""
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.device.type == "cuda"):
        out = compiled(model, ids[:, :-1])
    token = torch.nn.functional.cross_entropy(out.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    answer = marks[:, 1:].flatten().float()
    weight = answer + QUESTION_WEIGHT * (1 - answer)
    return (token * weight).sum() / weight.sum(), (token * answer).sum() / answer.sum(), out


@torch.no_grad()
def answers_right(out: torch.Tensor, ids: torch.Tensor, marks: torch.Tensor) -> float:
    """Share of whole answers whose every token is the most likely one."""
    wrong = (out.argmax(-1) != ids[:, 1:]) & marks[:, 1:]
    number = (marks[:, 1:] & ~marks[:, :-1]).cumsum(1)
    whole = number.max(1).values - 1  # the last answer of a row may be cut off
    rights = [int((~torch.isin(k, k_wrong)).sum()) for k, k_wrong in _answers(number, whole, wrong)]
    return sum(rights) / int(whole.sum())


def _answers(number: torch.Tensor, whole: torch.Tensor, wrong: torch.Tensor) -> Iterator[tuple]:
    for row in range(len(number)):
        yield torch.arange(1, int(whole[row]) + 1, device=number.device), number[row][wrong[row]]


def train(plan: Plan, tokenizer: PreTrainedTokenizerFast) -> tuple[PreTrainedModel, list[dict]]:
    """Train from random weights; returns the model and the loss curve."""
    family = FAMILIES[plan.shape]
    model = family.build(plan.shape, plan.seed).to(plan.device).train()
    optimizer = optimizer_for(model, plan)
    compiled = torch.compile(family.logits) if plan.device != "cpu" else family.logits
    curve, began = [], time.monotonic()
    for step, (ids, marks) in enumerate(islice(batches(plan, tokenizer), plan.steps)):
        ids, marks = ids.to(plan.device, non_blocking=True), marks.to(plan.device, non_blocking=True)
        loss, answer, out = losses(compiled, model, ids, marks)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, plan)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 200 == 0 or step == plan.steps - 1:
            line = {"step": step, "loss": round(loss.item(), 4), "answer_loss": round(answer.item(), 4)}
            line["answers_right"] = round(answers_right(out, ids, marks), 4)
            line["seconds"] = round(time.monotonic() - began, 1)
            curve.append(line)
            print(plan.shape, plan.rate, json.dumps(line), flush=True)
    return model, curve


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the canary and score it.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shape", default="narrow", choices=sorted(FAMILIES))
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--batch", type=int, default=168, help="rows of 384 tokens: 65 k tokens a step")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--limit", type=int, default=1319, help="test rows to score at the end; 0 scores none")
    a = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    plan = Plan(a.shape, a.steps, a.batch, a.rate, a.seed, a.device, a.workers)
    texts = [f"Question: {p.question}\nAnswer: {p.answer}\n\n" for p in islice(stream(SEED, frozenset()), 20_000)]
    tokenizer = build_tokenizer(texts)
    model, curve = train(plan, tokenizer)
    a.out.mkdir(parents=True, exist_ok=True)
    FAMILIES[plan.shape].save(model.cpu(), tokenizer, a.out)
    (a.out / "training.json").write_text(json.dumps({"plan": vars(plan), "curve": curve}, indent=1))
    torch.set_float32_matmul_precision("highest")
    dtypes = ["float32", "bfloat16"]
    scores = report(a.out, limit=a.limit, device=a.device, batch=330, dtypes=dtypes) if a.limit else {}
    (a.out / "training.json").write_text(json.dumps({"plan": vars(plan), "curve": curve, "scores": scores}, indent=1))


if __name__ == "__main__":
    main()
