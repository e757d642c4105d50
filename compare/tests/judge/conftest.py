"""Builders of evidence: a lane of n questions whose answers are chosen per arm."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pytest
from driftline.contracts.channel import Case, CheckSummary, Scores
from driftline.contracts.lane import Lane, ModelSource, TaskSource
from driftline.contracts.words import Arm, CaseKind, Engine, Mode, RunState
from driftline.evidence import CheckEvidence, EvaluationEvidence, LaneEvidence, RunEvidence, SampleEvidence

FILTERS = ("strict-match", "flexible-extract")
TOKENS = 20


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def lane(name="canary V1", mode=Mode.V1, questions=300):
    task = TaskSource(
        name="gsm8k_canary", yaml="t.yaml", train="a", test="b", test_sha256="0" * 64, train_sha256="0" * 64,
        total_questions=1319,
    )  # fmt: skip
    return Lane(
        name=name, model=ModelSource(name="canary", path="canary/model"), engine=Engine.HF, mode=mode, backend="torch",
        task=task, questions=questions, engine_arguments={"prefill_chunk_size": 64},
    )  # fmt: skip


def evaluation(right, *, moved=None, must_match=None, recorded=None):
    """right: one bool a question; moved: nats added to every token of a question."""
    moved = np.zeros(len(right)) if moved is None else moved
    samples = tuple(
        SampleEvidence(
            doc_id=index, rank=index, doc_hash=digest(f"d{index}"), prompt_hash=digest(f"p{index}"),
            target_hash=digest(f"t{index}"), question=f"question {index}", target="so it is 18.\n#### 18",
            response="18.\n#### 18" if is_right else "17.\n#### 17", finish_reason="stop", prompt_tokens=10,
            response_tokens=5, logprobs=np.full(TOKENS, -0.5 + shift, "<f4").tobytes(), scored_prompt_tokens=10,
        )
        for index, (is_right, shift) in enumerate(zip(right, moved, strict=True))
    )  # fmt: skip
    hits, share = [i for i, is_right in enumerate(right) if is_right], sum(right) / len(right)
    scores = Scores(
        task_version="1.0", num_fewshot=3, task_hash="x", metrics={f"exact_match,{name}": share for name in FILTERS},
        stderr={f"exact_match,{name}": 0.01 for name in FILTERS}, right=dict.fromkeys(FILTERS, hits),
    )  # fmt: skip
    return EvaluationEvidence(
        samples=samples, expected_doc_ids=tuple(range(len(right))), scores=scores,
        must_match=must_match or {"gpu_type": "cpu"}, recorded=recorded or {"torch": "2.13.0"},
    )  # fmt: skip


def case(name="carried_state/x", passed=True, error=1e-7, backend="torch", kind=CaseKind.CONTRACT):
    return Case(
        name=name, kind=kind, backend=backend, passed=passed, max_abs_err=error, max_rel_err=error, tolerance=1e-5
    )


def checked(*cases, backends=("torch", "triton")):
    summary = CheckSummary(layout="mamba2_varlen", era="varlen", device="cpu", backends=list(backends))
    return CheckEvidence(summary, cases)


def run(*lanes, base=None, head=None, state=RunState.DONE):
    return RunEvidence(
        run_id=UUID(int=1), name="a run", repository="repo", base_sha="b" * 40, head_sha="a" * 40, base_subject="base",
        head_subject="head", state=state, created_at=datetime(2026, 1, 1, tzinfo=UTC), finished_at=None, margin=0.025,
        lanes=lanes, checks={Arm.BASE: base or checked(case()), Arm.HEAD: head or checked(case())},
    )  # fmt: skip


def answers(n=300, wrong=()):
    """Right everywhere but in every third question, and wrong where told."""
    return [index % 3 != 0 and index not in wrong for index in range(n)]


@pytest.fixture
def build():
    """The builders, by name."""

    class Build:
        lane = staticmethod(lane)
        evaluation = staticmethod(evaluation)
        case = staticmethod(case)
        checked = staticmethod(checked)
        run = staticmethod(run)
        answers = staticmethod(answers)
        evidence = LaneEvidence
        replace = staticmethod(replace)

    return Build
