"""What Driftline costs above plain `lm_eval --model vllm`: the generate phase of one lane, through service and worker and without.

    .venv/bin/python -P benchmarks/vllm_cost.py [--runs 3] [--questions 300]

Needs `make vllm-env` and an idle machine. Runs of the canary lane against itself (two evaluations each, every sample hashed,
streamed and stored in PostgreSQL) alternate with as many of lm_eval's own command line on the same questions, engine arguments
and threads. The phase is lm-eval's `evaluate()`: prompts, answers, scores; ours as the database sees it, by the worker's
progress lines. Prints each pair's ratio and their median; exit code 1 if that is over the limit, 1.05.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from driftline_service.database.tables import EVENTS_CHANNEL, PROGRESS_CHANNEL

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("tests", "example", "deploy")]

import stacks  # noqa: E402
from repository import make_repository  # noqa: E402

LIMIT = 1.05
LANE, TASK = "canary vllm V1", "gsm8k_canary"
THREADS = 1
"""Of the engine: threads that wait for each other lose a time slice whenever anything else wants a core."""

PATIENCE_SECONDS = 1800.0
LOOK_SECONDS = 5.0
"""The longest without a look, should a notification be lost."""

TIMED = """
import sys, time
import lm_eval.evaluator as evaluator
inner = evaluator.evaluate
def timed(*given, **named):
    began = time.monotonic()
    result = inner(*given, **named)
    print(f"generate phase {time.monotonic() - began:.3f}", flush=True)
    return result
evaluator.evaluate = timed
from lm_eval.__main__ import cli_evaluate
sys.exit(cli_evaluate())
"""


def main() -> None:
    options = _options()
    ours: list[float] = []
    plain: list[float] = []
    with tempfile.TemporaryDirectory(prefix="driftline-cost-") as name:
        folder = Path(name)
        repository = make_repository(folder / "repository").path
        stack = stacks.Embedded(folder / "data")
        os.environ["DRIFTLINE_WORKER_THREADS"] = str(THREADS)
        server = stack.start(concurrency=1)
        try:
            with stack.database() as database:
                for channel in (EVENTS_CHANNEL, PROGRESS_CHANNEL):
                    database.execute(f"listen {channel}")
                for run in range(options.runs):
                    doc_ids, seconds = phases(server, database, repository, options.questions)
                    if run == 0:  # the first evaluation also fills the page cache: it is not counted
                        seconds = seconds[1:]
                    for one in seconds:
                        ours.append(one)
                        plain.append(plain_phase(doc_ids, folder / f"plain-{len(plain)}"))
                        _tell(f"ours {one:.2f} s, plain {plain[-1]:.2f} s, ratio {one / plain[-1]:.3f}")
        finally:
            stack.stop()
    ratio = statistics.median(each / beside for each, beside in zip(ours, plain, strict=True))
    _tell(
        f"generate phase of {LANE!r}, {options.questions} questions, {len(ours)} pairs: ours {statistics.median(ours):.2f} s, "
        f"plain {statistics.median(plain):.2f} s, median ratio {ratio:.3f}, limit {LIMIT}"
    )
    if ratio > LIMIT:
        raise SystemExit(1)


def phases(
    server: Any, database: "psycopg.Connection[Any]", repository: Path, questions: int
) -> tuple[list[int], list[float]]:
    """One run: the questions asked, and the seconds of each of its evaluations' generate phase."""
    body = {
        "repo": str(repository), "head": "main", "base": "main", "questions": questions, "lanes": [LANE],
        "measure_noise": True,
    }  # fmt: skip
    run_id = server.post("/api/v1/runs", body)["run_id"]
    seconds = list(_watched(database, run_id))
    query = """
        select doc_id from samples where attempt_id =
            (select adopted_attempt_id from jobs where run_id = %s and kind = 'evaluate' limit 1) order by doc_id
    """
    return [doc_id for (doc_id,) in database.execute(query, [run_id]).fetchall()], seconds


def _watched(database: "psycopg.Connection[Any]", run_id: str) -> Iterator[float]:
    """Seconds from the first `first_response` line to the first `teacher_forced` line of each attempt, as stored.

    It looks when the service says that something was stored: to ask again and again would take from what is measured."""
    query = """
        select attempts.id::text, attempts.phase from attempts join jobs on jobs.id = attempts.job_id
        where jobs.run_id = %s and jobs.kind = 'evaluate' and attempts.phase is not null
    """
    began: dict[str, float] = {}
    done: set[str] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for _ in database.notifies(timeout=LOOK_SECONDS, stop_after=1):
            pass
        now = time.monotonic()
        for attempt, phase in database.execute(query, [run_id]).fetchall():
            if phase in ("first_response", "generate"):
                began.setdefault(attempt, now)
            elif phase == "teacher_forced" and attempt not in done:
                done.add(attempt)
                yield now - began[attempt]
        [(state,)] = database.execute("select state from runs where id = %s", [run_id]).fetchall()
        if state in ("done", "failed", "cancelled"):
            if state != "done" or not done:
                raise SystemExit(f"run {run_id} is {state} with {len(done)} evaluations measured")
            return
    raise SystemExit(f"run {run_id}: not done within {PATIENCE_SECONDS:.0f} s")


def plain_phase(doc_ids: list[int], folder: Path) -> float:
    """Seconds of lm_eval's own `evaluate()` on these questions, by the command line that `driftline command` prints."""
    driftline = [str(ROOT / ".venv" / "bin" / "driftline"), "command", LANE]
    line = subprocess.run(driftline, check=True, capture_output=True, text=True).stdout.strip()
    (program,) = [word for word in line.split() if word.endswith("/bin/lm_eval")]
    python = f"{program.removesuffix('lm_eval')}python -P -s -c '{TIMED.replace(chr(39), chr(34))}'"
    samples = json.dumps({TASK: doc_ids}, separators=(",", ":"))
    line = line.replace(program, python).replace("--output_path out/lm_eval", f"--output_path {folder}")
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "HF_HUB_OFFLINE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(THREADS), "VLLM_CACHE_ROOT": str(folder / "cache"),
    }  # fmt: skip
    folder.mkdir()
    told = subprocess.run(
        ["bash", "-c", f"{line} --samples '{samples}'"], capture_output=True, text=True, env=environment, check=False
    )
    found = [text for text in told.stdout.splitlines() if text.startswith("generate phase ")]
    if told.returncode or len(found) != 1:
        raise SystemExit(f"lm_eval ended with {told.returncode}: {told.stderr[-2000:]}")
    return float(found[0].split()[-1])


def _tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=3, help="runs of two evaluations each")
    parser.add_argument("--questions", type=int, default=300)
    return parser.parse_args()


if __name__ == "__main__":
    main()
