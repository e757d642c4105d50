"""Samples files that are damaged or hostile: a refusal that names the line, never a traceback, in bounded memory."""

import gzip
import json
import subprocess
import sys

import pytest
from driftline.lmeval import BadOutputError, open_output
from driftline.lmeval.columns import read_columns

PEAK = """
import sys
from pathlib import Path
from driftline.lmeval import open_output
from driftline.lmeval.columns import read_columns
read_columns(open_output(Path(sys.argv[1])).tasks["gsm8k"])
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1])
"""
"""Prints its peak in kB. Not ru_maxrss, which begins with that of the process it was forked from."""


@pytest.fixture
def spoilt(lm_eval_files, tmp_path):
    """Write a good evaluation, change its samples file's bytes, and read it."""

    def read(change):
        folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k([True] * 3))
        path = next(folder.rglob("samples_*"))
        path.write_bytes(change(path.read_bytes()))
        return read_columns(open_output(folder).tasks["gsm8k"])

    return read


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        (lambda content: content[:-40], "bad_json", "line 6: not complete JSON"),
        (lambda content: content + b"\0" * 512, "nul_bytes", "line 7: holds NUL bytes"),
        (lambda content: content.replace(b"It is 2", b"It is \xff", 1), "bad_encoding", "line 2: not UTF-8"),
        (lambda content: content.replace(b'"doc_id": 1', b'"doc_id": 1, "doc_id": 1', 1), "duplicate_key", "line 2: the key"),
        (lambda content: content.replace(b'"doc_id": 1', b'"doc_id": true', 1), "bad_sample", "line 2: doc_id is 'True'"),
        (lambda content: content.replace(b'"doc_id": 1', b'"doc_id": 99999999999999999999', 1), "bad_sample", "not a count"),
        (lambda content: content.replace(b'"doc_id": 1', b'"doc_id": -1', 1), "bad_sample", "not a count from 0"),
        (lambda content: content.replace(b'"resps"', b'"replies"', 1), "bad_sample", "line 1: lacks 'resps'"),
        (lambda content: content.replace(b'"filter": "strict-match"', b'"filter": "\\ud800"', 1), "bad_sample", "is no name"),
        (lambda content: content.replace(b'"exact_match": 1.0', b'"exact_match": ' + b"9" * 5000, 1), "bad_json", "line 1"),
        (lambda content: content.replace(b'"resps": [[', b'"resps": 7, "x": [[', 1), "bad_sample", "line 1: not in the shape"),
        (lambda content: b"[]\n" + content, "bad_sample", "line 1: not an object"),
        (lambda content: b"[" * 100_000 + content, "bad_json", "nested too deeply"),
    ],
)  # fmt: skip
def test_a_damaged_line_is_named(spoilt, change, reason, message):
    with pytest.raises(BadOutputError) as refused:
        spoilt(change)
    assert refused.value.reason == reason
    assert message in str(refused.value)


def test_nul_and_half_a_surrogate_pair_in_an_answer_are_text(lm_eval_files, tmp_path):
    answer = "\0 5 \ud800"
    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k([True] * 3, responses={1: answer}))
    path = next(folder.rglob("samples_*"))
    lines = [json.loads(line.decode("utf-8", "surrogatepass")) for line in path.read_bytes().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))  # escaped, as other writers do
    samples = list(open_output(folder).tasks["gsm8k"].samples())
    assert samples[1].response == answer
    assert read_columns(open_output(folder).tasks["gsm8k"]).filters["strict-match"].doc_ids.tolist() == [0, 1, 2]


@pytest.mark.parametrize("change", [lambda content: content[:-20], lambda content: b"plain" + content])
def test_a_damaged_gzip_file_is_named(lm_eval_files, tmp_path, change):
    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k([True] * 300), zipped=True)
    path = next(folder.rglob("samples_*"))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadOutputError, match="gzip file is cut or damaged"):
        read_columns(open_output(folder).tasks["gsm8k"])


def test_a_line_of_200_mb_is_refused_without_holding_it(lm_eval_files, tmp_path):
    folder = lm_eval_files.write(tmp_path / "out", lm_eval_files.gsm8k([True]))
    path = next(folder.rglob("samples_*"))
    with gzip.open(f"{path}.gz", "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b"x" * 2**20)
    path.unlink()
    done = subprocess.run([sys.executable, "-P", "-c", PEAK, str(folder)], capture_output=True, text=True, check=False)
    assert "line 1: longer than 16 MB" in done.stderr


def test_memory_does_not_grow_with_the_file(lm_eval_files, tmp_path):
    """Two files, one of them 60 MB larger: the peak differs by their columns, some 60 bytes a line, and little else."""
    peaks, sizes = [], []
    for name, questions in (("small", 100), ("large", 6_000)):
        written = lm_eval_files.gsm8k([True] * questions, shots=220)
        folder = lm_eval_files.write(tmp_path / name, written)
        sizes.append(next(folder.rglob("samples_*")).stat().st_size)
        done = subprocess.run(
            [sys.executable, "-P", "-c", PEAK, str(folder)], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout) * 1024)
    assert sizes[1] - sizes[0] > 60e6
    assert peaks[1] - peaks[0] < 6e6
    assert peaks[1] < 150e6
