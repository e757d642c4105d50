"""Stock vLLM kernels against this project's, through the plugin, on one machine: plain `lm_eval --model vllm` for each.

    python benchmarks/vllm_arms.py --model granite=canary/model --out /tmp/arms [--questions 1319] [--jobs 6]

For each model and arm: two runs with CUDA graphs (their difference is the noise floor) and one eager. Every run is a process
of its own with caches of its own; several share the GPU, so times are told apart: --jobs 1 for those that will be quoted.
Writes OUT/MODEL-ARM-RUN/ (lm-eval's files, the log, and on our arm what the plugin served) and OUT/runs.json. Runs on any
Python that has vLLM and lm-eval; nothing of Driftline is installed. `driftline compare` reads the outputs afterwards.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "worker"))

from driftline_worker.children.vllm_plugin.distribution import make_distribution, reported_calls, variables  # noqa: E402

ARMS = ("stock", "ours")
GRAPHS, EAGER = ("graphs-1", "graphs-2"), ("eager",)
SECONDS = 420
"""Of one run. On an H200 a start with graphs takes 60 s alone and 100 s beside seven others, and vLLM's own kernels tune
themselves for 40 s at the first prompt of a machine."""

ENGINE = {
    "max_model_len": 2048, "max_num_batched_tokens": 512, "max_num_seqs": 128, "enable_chunked_prefill": True,
    "enable_prefix_caching": False, "trust_remote_code": True,
}  # fmt: skip
"""A token budget that cuts the prompts of many requests, so that states are carried."""

ON_GPU = {"dtype": "bfloat16", "gpu_memory_utilization": 0.05, "kv_cache_memory_bytes": 4_000_000_000}
"""Several engines share the GPU; each takes what it is told and measures nothing."""

ON_CPU = {"dtype": "float32"}


@dataclass(frozen=True)
class Run:
    """One evaluation of one arm; `folder` is where everything of it goes."""

    model: str
    path: Path
    arm: str
    name: str
    folder: Path


def main() -> None:
    options = _options()
    out = options.out.resolve()
    chosen = EAGER if options.device == "cpu" else tuple(options.runs.split(",")) if options.runs else (*GRAPHS, *EAGER)
    runs = [run for given in options.model for run in _runs(given, out, chosen)]
    with ThreadPoolExecutor(options.jobs) as pool:
        told = list(pool.map(lambda run: measure(run, options), runs))
    (out / "runs.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    for one in told:
        print(json.dumps(one))
    if any(one["exit"] for one in told):
        raise SystemExit(1)


def measure(run: Run, options: argparse.Namespace) -> dict[str, object]:
    """Run lm_eval; what came of it."""
    run.folder.mkdir(parents=True)
    environment = _environment(run, options)
    started = time.monotonic()
    with (run.folder / "log").open("wb") as log:
        process = subprocess.run(
            _command(run, options), cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False,
            timeout=SECONDS,
        )  # fmt: skip
    wall = time.monotonic() - started
    calls = reported_calls(run.folder / "plugin" / "calls.jsonl")
    if run.arm == "ours" and process.returncode == 0 and not calls:
        raise SystemExit(f"{run.folder.name}: vLLM did not load the plugin, see its log")
    results = [json.loads(file.read_text(encoding="utf-8")) for file in run.folder.rglob("results_*.json")]
    told = {
        "run": run.folder.name, "exit": process.returncode, "wall_s": round(wall, 1),
        "evaluation_s": [round(float(each["total_evaluation_time_seconds"]), 1) for each in results],
        "scores": [each["results"] for each in results], "served": [vars(call) for call in calls],
    }  # fmt: skip
    (run.folder / "run.json").write_text(
        json.dumps(told) + "\n", encoding="utf-8"
    )  # the others may not get to their end
    return told


def save_for_transformers_4(model: Path, folder: Path) -> Path:
    """The model as transformers 4.57 reads it: infinite limits left out, the tokenizer's class by its older name."""
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config.pop("time_step_limit", None)  # written as {"__float__": "Infinity"}; the default
    named = {"linear_attention": "mamba", "full_attention": "attention"}
    if "layer_types" in config:
        config["layer_types"] = [named.get(name, name) for name in config["layer_types"]]
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    if tokenizer.get("tokenizer_class") == "TokenizersBackend":
        tokenizer["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=1), encoding="utf-8")
    return folder


def _runs(given: str, out: Path, chosen: tuple[str, ...]) -> Iterator[Run]:
    """Both arms of each run next to each other, so that what else the machine does meets both."""
    name, _, path = given.partition("=")
    model = save_for_transformers_4(ROOT / path, out / f"model-{name}")
    for run in chosen:
        yield from (Run(name, model, arm, run, out / f"{name}-{arm}-{run}") for arm in ARMS)


def _command(run: Run, options: argparse.Namespace) -> list[str]:
    device = ON_CPU if options.device == "cpu" else ON_GPU
    engine = ENGINE | device | {"enforce_eager": run.name in EAGER}
    arguments = {"pretrained": run.path} | engine
    return [
        options.python, "-P", "-m", "lm_eval", "--model", "vllm", "--model_args",
        ",".join(f"{name}={value}" for name, value in arguments.items()), "--include_path", str(ROOT / "canary" / "tasks"),
        "--tasks", "gsm8k_canary", "--batch_size", "auto", "--limit", str(options.questions), "--log_samples",
        "--output_path", str(run.folder / "lm_eval"),
    ]  # fmt: skip


def _environment(run: Run, options: argparse.Namespace) -> dict[str, str]:
    own = {
        "VLLM_CACHE_ROOT": str(run.folder / "cache"), "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(run.folder / "hf"), "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip
    if options.device == "cpu":
        own |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **own}
    environment.pop("TQDM_DISABLE", None)  # vLLM divides by the time of a bar that is off, which is 0
    if run.arm == "stock":
        return environment
    backend = "torch" if options.device == "cpu" else "triton"
    folder = make_distribution(run.folder / "plugin")
    return environment | variables(
        folder, kernels=options.kernels.resolve(), backend=backend, python_path=os.environ.get("PYTHONPATH")
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="stock vLLM kernels against ours, through the plugin")
    parser.add_argument("--model", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kernels", type=Path, default=ROOT / "kernels" / "src")
    parser.add_argument("--questions", type=int, default=1319)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--runs", help="of graphs-1, graphs-2 and eager, separated by commas; all by default")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with vLLM and lm-eval")
    return parser.parse_args()


if __name__ == "__main__":
    main()
