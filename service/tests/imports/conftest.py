"""Reports as a person would send them: an evaluation with samples, and one of figures only."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from driftline_service.database.tables import ImportKind
from driftline_service.imports.reported import NewImport, NewSample, NewScore
from driftline_service.imports.storing import Stored, store

REPOSITORY = "https://example.org/kernels.git"
FILTERS = ("strict-match", "flexible-extract")


def digest(name: str, doc_id: int) -> str:
    """As the scripted worker's samples have it, so that the two pair."""
    return sha256(f"{name}{doc_id}".encode()).hexdigest()


def new_sample(doc_id: int, *, response: str = "so #### 42", right: float = 1.0) -> NewSample:
    return NewSample(
        doc_id=doc_id, question=f"question {doc_id}?", target="#### 42", doc_hash=digest("doc", doc_id),
        prompt_hash=digest("prompt", doc_id), target_hash=digest("target", doc_id), response=response,
        scores=dict.fromkeys(FILTERS, right), extracted=dict.fromkeys(FILTERS, "42"),
    )  # fmt: skip


def new_import(**changes: Any) -> NewImport:
    """Ten right answers of commit bbbb… on lane `canary V1`; `changes` replace fields."""
    samples = tuple(new_sample(doc_id) for doc_id in range(10))
    usual: dict[str, Any] = {
        "kind": ImportKind.SAMPLES, "content_hash": "c" * 64, "lane_name": "canary V1", "task": "gsm8k_canary",
        "commit_sha": "b" * 40, "repository": REPOSITORY, "reported_by": "Ada", "note": "by hand", "measured_at": None,
        "scores": tuple(NewScore("exact_match", name, 1.0, 0.0, 10) for name in FILTERS),
        "facts": {"task": "gsm8k_canary", "engine": "hf", "num_fewshot": "3"}, "details": {"task_version": "3.0"},
        "samples": lambda: iter(samples),
    }  # fmt: skip
    return NewImport(**(usual | changes))


@pytest.fixture
def reported(world: Any) -> Callable[..., Stored]:
    """Stores a report and commits."""

    def report(**changes: Any) -> Stored:
        with world.sessions.begin() as session:
            return store(session, new_import(**changes))

    return report
