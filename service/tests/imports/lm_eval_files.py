"""What lm-eval 0.4.13 wrote for twelve questions of the canary (data/), and the same spoilt in one way or another."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
STAMP = "2026-12-02T08-56-21.855593"
RESULTS = f"results_{STAMP}.json"
SAMPLES = f"samples_gsm8k_canary_{STAMP}.jsonl"
TASK = "gsm8k_canary"

Line = dict[str, Any]


def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / RESULTS).read_text(encoding="utf-8"))
    return found


def lines() -> list[Line]:
    return [json.loads(line) for line in (DATA / SAMPLES).read_text(encoding="utf-8").splitlines()]


def packed(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    """A tar archive of these files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue()


def real(mode: str = "w:gz") -> bytes:
    """The files as they are."""
    return packed({name: (DATA / name).read_bytes() for name in (RESULTS, SAMPLES)}, mode)


def spoilt(
    change_results: Callable[[dict[str, Any]], object] = lambda found: None,
    change_lines: Callable[[list[Line]], Iterable[Line] | None] = lambda found: None,
    *,
    gzipped: bool = False,
) -> bytes:
    """The files with changes, hashes and the task hash made right again, so that only the change itself is wrong."""
    table, samples = results(), lines()
    samples = list(change_lines(samples) or samples)
    digest = hashlib.sha256("".join(s["doc_hash"] + s["prompt_hash"] + s["target_hash"] for s in samples).encode())
    table["task_hashes"][TASK] = digest.hexdigest()
    change_results(table)
    text = "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in samples).encode()
    name, content = (f"{SAMPLES}.gz", gzip.compress(text)) if gzipped else (SAMPLES, text)
    return packed({RESULTS: json.dumps(table).encode(), name: content})


def rescored(samples: list[Line], table: dict[str, Any]) -> None:
    """Make the reported means and errors those of the samples."""
    reported = table["results"][TASK]
    for name in ("strict-match", "flexible-extract"):
        values = [line["exact_match"] for line in samples if line["filter"] == name]
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
        reported[f"exact_match,{name}"] = mean
        reported[f"exact_match_stderr,{name}"] = (variance / len(values)) ** 0.5
