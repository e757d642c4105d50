"""`driftline compare` on two gsm8k evaluations: 1,319 questions, two filters, 8 MB of samples each, start to exit.

Made evaluations unless two folders are named; a verdict other than the planted one prints no figure. Run in the control
environment: `python benchmarks/compare_cli.py [BASE HEAD] [--repeats N] [--imports]`. The limit is 0.8 s of wall time on
an idle machine; the CPU time beside it says what the wall would be without other load.
"""

import argparse
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUESTIONS = 1319
LIMIT_SECONDS = 0.8
FILTERS = ("strict-match", "flexible-extract")
STAMP = "2026-01-01T00-00-00.000000"
COMMAND = "from driftline.cli import main; main()"
REGRESSED = 2
SHOTS = "Question: How many apples are left of the ones that were there?\nAnswer: Some of them.\n#### 5\n\n" * 24


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write(folder: Path, right: list[bool]) -> Path:
    """One evaluation as lm-eval 0.4.13 writes it."""
    folder.mkdir()
    lines = [line(doc_id, name, right[doc_id]) for name in FILTERS for doc_id in range(QUESTIONS)]
    text = "".join(json.dumps(each) + "\n" for each in lines)
    (folder / f"samples_gsm8k_{STAMP}.jsonl").write_text(text)
    mean = sum(right) / QUESTIONS
    error = math.sqrt(mean * (1 - mean) / (QUESTIONS - 1))
    table = {f"exact_match,{name}": mean for name in FILTERS} | {
        f"exact_match_stderr,{name}": error for name in FILTERS
    }
    hashes = "".join(each["doc_hash"] + each["prompt_hash"] + each["target_hash"] for each in lines)
    results = {
        "results": {"gsm8k": table}, "configs": {"gsm8k": {"doc_to_text": "Question: {{question}}\nAnswer:"}},
        "versions": {"gsm8k": 3.0}, "n-shot": {"gsm8k": 5}, "higher_is_better": {"gsm8k": {"exact_match": True}},
        "n-samples": {"gsm8k": {"original": QUESTIONS, "effective": QUESTIONS}}, "config": {"model": "hf"},
        "lm_eval_version": "0.4.13", "task_hashes": {"gsm8k": sha256(hashes)},
    }  # fmt: skip
    (folder / f"results_{STAMP}.json").write_text(json.dumps(results))
    return folder


def line(doc_id: int, name: str, right: bool) -> dict[str, object]:
    question = f"There are {doc_id} apples and one more, how many are there, and why is that so, step by step?"
    prompt, target = (
        f"{SHOTS}Question: {question}\nAnswer:",
        f"One more than that. {'So it is. ' * 20}\n#### {doc_id + 1}",
    )
    doc = {"question": question, "answer": target}
    response = f" One more. {'So it is. ' * 20}\n#### {doc_id + right}"
    return {
        "doc_id": doc_id, "doc": doc, "target": target,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["Question:"], "do_sample": False}}},
        "resps": [[response]], "filtered_resps": [str(doc_id + right)], "filter": name, "metrics": ["exact_match"],
        "doc_hash": sha256(json.dumps(doc, indent=2)), "prompt_hash": sha256(prompt), "target_hash": sha256(target),
        "exact_match": float(right),
    }  # fmt: skip


def run(folders: list[Path], *options: str) -> tuple[float, float, "subprocess.CompletedProcess[str]"]:
    """Wall and CPU seconds of one process."""
    before, started = os.times(), time.perf_counter()
    command = [sys.executable, "-P", *options, "-c", COMMAND, "compare", *map(str, folders), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, done


def measure(folders: list[Path], repeats: int, *, imports: bool) -> None:
    runs = [run(folders) for _ in range(repeats)]
    walls, cpus = [each[0] for each in runs], [each[1] for each in runs]
    size = sum(path.stat().st_size for folder in folders for path in folder.rglob("samples_*")) / 1e6
    print(f"{size:.1f} MB of samples, {repeats} runs, limit {LIMIT_SECONDS} s of wall time")
    print(f"wall: median {statistics.median(walls):.3f} s, least {min(walls):.3f} s")
    print(f"CPU:  median {statistics.median(cpus):.3f} s, least {min(cpus):.3f} s; load {os.getloadavg()[0]:.1f}")
    if imports:
        rows = [each for each in run(folders, "-X", "importtime")[2].stderr.splitlines() if "|" in each][1:]
        print("\nimports that take longest by themselves (µs; cumulated; name)")
        print("\n".join(sorted(rows, key=lambda row: -int(row.split("|")[0].split(":")[1]))[:15]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--imports", action="store_true", help="what importing costs")
    given = parser.parse_args()
    if given.folders:
        measure(given.folders, given.repeats, imports=given.imports)
        return
    with tempfile.TemporaryDirectory() as place:
        base = [doc_id % 5 != 0 for doc_id in range(QUESTIONS)]
        head = [right and doc_id % 9 != 0 for doc_id, right in enumerate(base)]
        folders = [write(Path(place) / "base", base), write(Path(place) / "head", head)]
        done = run(folders)[2]
        if done.returncode != REGRESSED:
            raise SystemExit(f"the planted drop gave exit {done.returncode}: {done.stdout}{done.stderr}")
        measure(folders, given.repeats, imports=given.imports)


if __name__ == "__main__":
    main()
