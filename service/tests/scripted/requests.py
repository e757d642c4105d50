"""What tests ask for: a lane and a run, valid but for what a test changes."""

from typing import Any

from driftline.contracts.lane import Lane, ModelSource, TaskSource
from driftline.contracts.words import Engine, Layout, Mode
from driftline_service.runs.submission import Commit, NewRun


def lane(name: str = "canary V1", questions: int = 3) -> Lane:
    """A lane on the CPU; its task has ten questions."""
    digest = "0" * 64
    task = TaskSource(
        name="gsm8k_canary", yaml="t.yaml", train="a.jsonl", test="b.jsonl", test_sha256=digest, train_sha256=digest,
        total_questions=10,
    )  # fmt: skip
    return Lane(
        name=name, model=ModelSource(name="canary", path="canary/model"), engine=Engine.HF, mode=Mode(name[-2:]),
        backend="torch", task=task, questions=questions, engine_arguments={"batch_size": 4},
    )  # fmt: skip


def new_run(**changes: Any) -> NewRun:
    """A request for one lane with two different kernels; `changes` replace fields."""
    commits = {arm: arm[0] * 40 for arm in ("base", "head")}
    arms = {
        arm: Commit(ref=arm, sha=sha.replace("h", "d"), subject=f"the {arm}", kernel_path="kernels", kernel_tree=sha)
        for arm, sha in commits.items()
    }
    usual: dict[str, Any] = {
        "name": "a run", "repository_url": "https://example.org/kernels.git", "main_branch": "main",
        "layout": Layout.MAMBA2_VARLEN, "base": arms["base"], "head": arms["head"], "lanes": (lane(),),
        "margin": 0.025, "created_by": "a person",
    }  # fmt: skip
    return NewRun(**(usual | changes))
