"""Main's commits, measured one after the other, whose score drops at one of them."""

from datetime import timedelta
from typing import Any

import numpy as np
from driftline.contracts.words import AttemptState, JobState
from driftline_service.clock import now_utc
from driftline_service.database.tables import Attempt, Job
from sqlalchemy import select

STEP = 9
"""The first commit of the new level."""


def sha(place: int) -> str:
    return f"{place + 1:02d}" + 38 * "c"


def measured_history(world: Any) -> dict[int, Any]:
    """Eighteen of main's commits, measured as base: 0.58 before the step, 0.50 from it on. Their runs by place."""
    noise, runs, start = np.random.default_rng(3).normal(0, 0.004, 18), {}, now_utc() - timedelta(days=30)
    for place in range(18):
        new = world.new_run()
        base = type(new.base)(ref="main", sha=sha(place), subject="s", kernel_path="kernels", kernel_tree=sha(place))
        runs[place] = run_id = world.submit(base=base)
        score = (0.58 if place < STEP else 0.50) + noise[place]
        at = start + timedelta(hours=place)
        with world.sessions.begin() as session:
            job = session.scalars(
                select(Job).where(Job.run_id == run_id, Job.kind == "evaluate", Job.arm == "base")
            ).one()
            metrics = {"exact_match,strict-match": score, "exact_match,flexible-extract": 0.6}
            scores = {
                "metrics": metrics,
                "stderr": {},
                "right": {},
                "task_version": "3",
                "num_fewshot": 3,
                "task_hash": "",
            }
            attempt = Attempt(
                job_id=job.id, number=1, state=AttemptState.SUCCEEDED, worker_name="w", worker={}, environment_id="env-1",
                token_hash=str(job.id), lease_until=at, finished_at=at, scores=scores,
            )  # fmt: skip
            session.add(attempt)
            session.flush()
            job.adopted_attempt_id, job.state, job.finished_at = attempt.id, JobState.SUCCEEDED, at
    return runs
