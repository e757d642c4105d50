"""How many questions each cell needs to see a kernel bug: log-probability against exact_match, on the canary.

The example's bug (example/patches/initial-state-decay.patch) is planted at three sizes, by scaling the offset it puts into
the decay of the carried state. Each variant goes through engine hf's own code in mode V1. Pairs without any change, float32 and
bfloat16 in other batches, say what the log-probability's margin must stand above. Run in the control environment; the
engine runs in the eval environment beside it:
`.venv/bin/python benchmarks/logprob_power.py [--questions N] [--forced N] [--keep FOLDER]`; `--keep` reuses what is there.
"""

import argparse
import base64
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import NormalDist
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PATCH = ROOT / "example/patches/initial-state-decay.patch"
SCALED = {
    "torch_backend/ssd.py": ("* opens_sequence\n", "* opens_sequence * {size!r}\n"),
    "triton_backend/ssd_chunk_scan.py": ("(decay - origin)", "(decay - origin * {size!r})"),
}
"""Lines of the patch where the offset's size can be put in, by file."""

CHUNK = 64
TARGET_POWER = 0.8
CELLS = 6
"""Of a run on both canary lanes: the level of one cell is 0.05 / 6."""


@dataclass(frozen=True)
class Variant:
    """One evaluation: the bug's size (0: none), how it is batched, in which dtype; whether it answers questions too."""

    name: str
    size: float = 0.0
    batch_size: int = 16
    dtype: str = "float32"
    answers: bool = False
    mode: str = "V1"


VARIANTS = (
    Variant("base", answers=True),
    Variant("bug x 1", size=1.0, answers=True),
    Variant("bug x 1/4", size=1 / 4, answers=True),
    Variant("bug x 1/16", size=1 / 16, answers=True),
    Variant("float32, batch 7", batch_size=7),
    Variant("float32, batch 3", batch_size=3),
    Variant("float32, whole prompts", mode="V0"),
    Variant("bfloat16, batch 16", dtype="bfloat16"),
    Variant("bfloat16, batch 7", batch_size=7, dtype="bfloat16"),
    Variant("bfloat16, batch 3", batch_size=3, dtype="bfloat16"),
    Variant("bfloat16, whole prompts", dtype="bfloat16", mode="V0"),
)
FAULTY = tuple(each.name for each in VARIANTS if each.size)
UNCHANGED = (
    ("base", "float32, batch 7"), ("base", "float32, batch 3"), ("base", "float32, whole prompts"),
    ("bfloat16, batch 16", "bfloat16, batch 7"), ("bfloat16, batch 16", "bfloat16, batch 3"),
    ("bfloat16, batch 16", "bfloat16, whole prompts"), ("base", "bfloat16, batch 16"),
)  # fmt: skip
"""Pairs of one and the same kernels. The last is no A/A pair: it shows what another dtype moves."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=200, help="questions that are answered")
    parser.add_argument("--forced", type=int, default=400, help="questions whose log-probabilities are taken")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--gpu-type", help="measure on the GPU with the Triton backend instead, and call it so")
    parser.add_argument("--eval-python", type=Path, default=ROOT / ".venv-eval/bin/python")
    parser.add_argument("--keep", type=Path, help="folder for what was measured; what lies there is not measured again")
    parser.add_argument(
        "--only", action="append", help="measure only variants whose name begins so, and print no table"
    )
    parser.add_argument("--collect", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.collect is not None:
        collect(json.loads(options.collect.read_text()))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        wanted = [each for each in VARIANTS if not options.only or each.name.startswith(tuple(options.only))]
        found = {each.name: measured(each, folder, options) for each in wanted}
        if not options.only:
            print_tables(found, options)


def measured(variant: Variant, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The variant's lines, measured in a process of the eval environment unless they lie in the folder."""
    stem = folder / variant.name.replace(" ", "_").replace(",", "").replace("/", "-")
    lines = stem.with_name(stem.name + ".jsonl")
    if not lines.exists():
        spec = spec_of(variant, kernels(variant.size, folder), options)
        spec_file, partial = stem.with_name(stem.name + ".spec.json"), stem.with_name(stem.name + ".partial")
        spec_file.write_text(json.dumps({"spec": spec, "lines": str(partial), "answers": variant.answers}))
        began = time.monotonic()
        command = [options.eval_python, "-P", __file__, "--collect", spec_file]
        subprocess.run(command, check=True, env=os.environ | {"OMP_WAIT_POLICY": "passive"})
        print(f"{variant.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        partial.rename(lines)
    found: dict[str, Any] = {"forced": {}, "right": {}}
    for line in map(json.loads, lines.read_text().splitlines()):
        if line["type"] == "teacher_forced":
            found["forced"][line["doc_id"]] = base64.b64decode(line["logprobs"])
        elif line["type"] == "scores":
            found["right"] = {name: set(doc_ids) for name, doc_ids in line["right"].items()}
    return found


def kernels(size: float, folder: Path) -> Path:
    """An import folder with this project's kernels, the bug planted at `size`."""
    target = folder / f"kernels-{size:g}"
    if target.exists():
        return target
    package = Path("kernels/src/mamba2_varlen")
    shutil.copytree(ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__"))
    if size:
        alone = os.environ | {"GIT_CEILING_DIRECTORIES": str(target.parent)}
        subprocess.run(["git", "apply", str(PATCH)], cwd=target, check=True, env=alone)
        for name, (found, scaled) in SCALED.items():
            file = target / package / name
            text = file.read_text()
            assert text.count(found) == 1, f"{PATCH.name} no longer has the line that is scaled in {name}"
            file.write_text(text.replace(found, scaled.format(size=size)))
    return target


def spec_of(variant: Variant, import_root: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The evaluation child's spec for one variant of lane canary V1."""
    from driftline.questions import fixed_order

    most = max(options.questions, options.forced)
    return {
        "import_dir": str(import_root / "kernels/src"), "model_path": str(ROOT / "canary/model"),
        "lane": {
            "name": "canary V1", "model": {"name": "canary"}, "engine": "hf", "mode": variant.mode,
            "backend": "triton" if options.gpu_type else "torch", "gpu_type": options.gpu_type,
            "task": {"name": "gsm8k_canary"},
            "engine_arguments": {"dtype": variant.dtype, "num_fewshot": 3, "prefill_chunk_size": CHUNK}
            | ({"experts_implementation": "eager"} if options.gpu_type else {}),  # no grouped product in float32 there
        },
        "task_yaml": str(ROOT / "canary/tasks/gsm8k_canary.yaml"), "train_path": str(ROOT / "canary/data/train.jsonl"),
        "test_path": str(ROOT / "canary/data/test.jsonl"), "batch_size": variant.batch_size, "threads": options.threads,
        "doc_ids": fixed_order(1319, most)[: options.questions], "block": 100, "forced_doc_ids": fixed_order(1319, most),
    }  # fmt: skip


def collect(told: dict[str, Any]) -> None:
    """In the eval environment: one variant through the engine, its lines into a file."""
    from types import ModuleType

    package = ModuleType("driftline_worker")
    package.__path__ = [str(ROOT / "worker/driftline_worker")]
    sys.modules["driftline_worker"] = package
    forced_ids = told["spec"].pop("forced_doc_ids")
    spec_file = Path(told["lines"]).with_suffix(".engine.json")
    spec_file.write_text(json.dumps(told["spec"]))
    import torch
    from driftline_worker.children.hf_engine import evaluation
    from driftline_worker.children.hf_engine.granite_patch import install
    from driftline_worker.children.hf_engine.kernels_loader import load_kernels
    from driftline_worker.children.hf_engine.spec import read_spec
    from driftline_worker.children.hf_engine.task_subset import load_task
    from driftline_worker.children.line_channel import Channel

    spec = read_spec(spec_file)
    torch.set_num_threads(spec.threads)
    with Path(told["lines"]).open("wb") as file:
        channel = Channel(file.fileno())
        lm = evaluation.load_model(spec)
        operators = install(lm.model, load_kernels(spec.import_dir), spec.lane.backend)
        evaluation.rehearse(lm, operators, spec)
        if told["answers"]:
            evaluation.generate(lm, load_task(spec), spec, channel)
        more = replace(spec, doc_ids=tuple(forced_ids))
        task = load_task(more)
        task.build_all_requests(rank=0, world_size=1)
        evaluation.force(lm, task, more, channel)


def print_tables(found: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    print(
        f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {os.cpu_count()} cores, {options.gpu_type or 'no GPU'}; canary V1, "
        f"chunks of {CHUNK}; {options.questions} questions answered, {options.forced} teacher-forced; "
        f"one cell's level 0.05/{CELLS}, power {TARGET_POWER}\n"
    )
    heads = ("pair", "log-probability, nats a token", "t", "questions with a moved token", "lost, gained")
    print(f"| {' | '.join(heads)} | needed: logprob | needed: exact_match |\n{'|---' * 7}|")
    for name in FAULTY:
        print(row("base", name, found, options.questions))
    heads = ("unchanged pair", "mean", "90 % interval", "largest of one question", "questions with a moved token")
    print(f"\n| {' | '.join(heads)} |\n{'|---' * 5}|")
    for one, other in UNCHANGED:
        print(unchanged_row(one, other, found))


def row(base: str, head: str, found: dict[str, dict[str, Any]], questions: int) -> str:
    """A faulty pair: what moved, and the questions that each cell needs."""
    moves, moved = differences(found[base], found[head])
    error = moves.std(ddof=1) / len(moves) ** 0.5
    lost, gained = flips(found[base], found[head])
    needed = shown(needed_by_logprob(moves)), shown(needed_by_exact_match(lost, gained, questions))
    return (
        f"| {head} | {moves.mean():+.5f} ± {1.645 * error:.5f} | {moves.mean() / error if error else 0:.1f} | "
        f"{moved} of {len(moves)} | {lost}, {gained} of {questions} | {needed[0]} | {needed[1]} |"
    )


def unchanged_row(one: str, other: str, found: dict[str, dict[str, Any]]) -> str:
    import numpy as np
    from driftline.statistics.bootstrap import mean_interval

    moves, moved = differences(found[one], found[other])
    low, high = mean_interval(moves, level=0.9)
    return (
        f"| {one} : {other} | {moves.mean():+.2g} | {low:+.2g} to {high:+.2g} | {np.abs(moves).max():.2g} | "
        f"{moved} of {len(moves)} |"
    )


def differences(base: dict[str, Any], head: dict[str, Any]) -> Any:
    """(mean move of each question in nats a token, questions with a token moved by more than 1e-3)."""
    import numpy as np

    tokens = [
        (
            np.frombuffer(base["forced"][each], "<f4").astype(float),
            np.frombuffer(head["forced"][each], "<f4").astype(float),
        )
        for each in sorted(base["forced"])
    ]
    moves = np.array([other.mean() - one.mean() for one, other in tokens])
    return moves, sum(bool(np.abs(other - one).max() > 1e-3) for one, other in tokens)


def flips(base: dict[str, Any], head: dict[str, Any]) -> tuple[int, int]:
    """(lost, gained) of the filter with more of them."""
    pairs = [
        (len(base["right"][name] - head["right"][name]), len(head["right"][name] - base["right"][name]))
        for name in base["right"]
    ]
    return max(pairs, key=sum)


def needed_by_exact_match(lost: int, gained: int, questions: int) -> int | None:
    """Questions at which the exact McNemar test finds the difference that was seen, in its direction; None if there is none."""
    from driftline.statistics.power import mcnemar_power

    drop, share = abs(lost - gained) / questions, (lost + gained) / questions
    if drop == 0:
        return None
    low, high = 1, 16
    while mcnemar_power(drop, share, high, alpha=0.05 / CELLS) < TARGET_POWER:
        low, high = high, 2 * high
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (
            (low, middle) if mcnemar_power(drop, share, middle, alpha=0.05 / CELLS) >= TARGET_POWER else (middle, high)
        )
    return high


def needed_by_logprob(moves: Any) -> int | None:
    """Questions at which the permutation test finds it: the normal approximation, then raised until 200 resamples agree."""
    import numpy as np
    from driftline.statistics.permutation import sign_flip_p

    if moves.std() == 0:
        return None
    normal = NormalDist()
    z = normal.inv_cdf(1 - 0.05 / CELLS / 2) + normal.inv_cdf(TARGET_POWER)
    n = max(8, ceil((z * moves.std(ddof=1) / abs(moves.mean())) ** 2))
    rng = np.random.default_rng(7)
    while n < 100_000:
        hits = [sign_flip_p(rng.choice(moves, n), draws=2000) <= 0.05 / CELLS for _ in range(200)]
        if np.mean(hits) >= TARGET_POWER:
            return n
        n = ceil(1.1 * n)
    return None


def shown(questions: int | None) -> str:
    return "not seen" if questions is None else f"{questions:,}"


if __name__ == "__main__":
    main()
