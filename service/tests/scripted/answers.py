"""What a good child says of one question, and of all of them."""

import base64
import struct
from hashlib import sha256
from typing import Any


def sample(doc_id: int, rank: int, response: str = "so #### 42", target: str = "#### 42") -> dict[str, Any]:
    hashes = {name: sha256(f"{name}{doc_id}".encode()).hexdigest() for name in ("doc", "prompt", "target")}
    return {
        "type": "sample", "doc_id": doc_id, "rank": rank, "question": f"question {doc_id}?", "target": target,
        "response": response, "finish_reason": "stop", "prompt_tokens": 7, "response_tokens": 4,
    } | {f"{name}_hash": digest for name, digest in hashes.items()}  # fmt: skip


def forced(doc_id: int, values: tuple[float, ...] = (-0.5, -0.25, -0.125)) -> dict[str, Any]:
    packed = base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
    counts = {"prompt_tokens": len(values) - 1, "answer_tokens": 1}
    return {"type": "teacher_forced", "doc_id": doc_id, "logprobs": packed} | counts


def scores(doc_ids: list[int]) -> dict[str, Any]:
    filters = ("strict-match", "flexible-extract")
    return {
        "type": "scores", "task_version": "3.0", "num_fewshot": 3, "task_hash": "t",
        "metrics": {f"exact_match,{name}": 1.0 for name in filters},
        "stderr": {f"exact_match,{name}": 0.0 for name in filters},
        "right": {name: sorted(doc_ids) for name in filters},
    }  # fmt: skip
