"""How a quick child speaks: the lines of a real one, without torch. Standard library only, as for every child."""

import base64
import json
import os
import struct
import sys
import time
from hashlib import sha256
from pathlib import Path

FD = int(sys.argv[sys.argv.index("--channel-fd") + 1])
RESULTS = ("sample", "teacher_forced", "case", "kernel_build")


class Channel:
    """Counts what the last line must tell."""

    def __init__(self):
        self.results = 0
        self.send("hello", protocol=1)
        self.send("environment", must_match={"model": "canary@1"}, recorded={"engine": "quick"})

    def send(self, line, /, **fields):
        data = json.dumps({"type": line, **fields}).encode() + b"\n"
        self.results += line in RESULTS
        while data:
            data = data[os.write(FD, data) :]

    def end(self):
        self.send("result", lines=self.results)


def spec():
    return json.loads(Path(sys.argv[sys.argv.index("--spec") + 1]).read_text(encoding="utf-8"))


def build():
    channel = Channel()
    channel.send("kernel_build", kernel="scan", config="64", arch="sm_80", compiled=True, registers=96, spills=0,
                 shared_memory=4096)  # fmt: skip
    channel.end()


def check():
    channel = Channel()
    channel.send("check_summary", layout="mamba2_varlen", era="ours", device="cpu", backends=["torch"])
    errors = {"max_abs_err": 1e-6, "max_rel_err": 1e-5, "tolerance": 1e-4}
    for name in ("packed", "carried_state"):
        channel.send("case", name=name, kind="contract", backend="torch", passed=True, **errors)
    channel.end()


def evaluate(pause=0.6):
    """Answers in two halves, `pause` seconds apart, so that they travel in batches of their own."""
    channel, asked = Channel(), spec()["doc_ids"]
    half = len(asked) // 2
    for rank, doc_id in enumerate(asked):
        if rank == half:
            channel.send("progress", phase="generate", done=half, total=len(asked))
            time.sleep(pause)
        channel.send("sample", **sample(doc_id, rank))
    time.sleep(pause)
    for doc_id in asked:
        values = base64.b64encode(struct.pack("<3f", -0.5, -0.25, -0.125)).decode()
        channel.send("teacher_forced", doc_id=doc_id, logprobs=values, prompt_tokens=2, answer_tokens=1)
    filters = ("strict-match", "flexible-extract")
    channel.send(
        "scores", task_version="3.0", num_fewshot=3, task_hash="t",
        metrics={f"exact_match,{name}": 1.0 for name in filters},
        stderr={f"exact_match,{name}": 0.0 for name in filters},
        right={name: sorted(asked) for name in filters},
    )  # fmt: skip
    channel.end()


def sample(doc_id, rank):
    hashes = {f"{name}_hash": sha256(f"{name}{doc_id}".encode()).hexdigest() for name in ("doc", "prompt", "target")}
    return {
        "doc_id": doc_id, "rank": rank, "question": f"question {doc_id}?", "target": "#### 42",
        "response": "so #### 42", "finish_reason": "stop", "prompt_tokens": 7, "response_tokens": 4, **hashes,
    }  # fmt: skip
