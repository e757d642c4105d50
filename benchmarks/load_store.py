"""Storing one evaluation of 1,319 questions, with every log-probability, through the worker's HTTP: within a second.

    python -P benchmarks/load_store.py [--times 5] [--batch 400]

The time is that of all requests from the first batch to the answer that the evaluation is adopted; making the JSON is the
worker's own.
"""

import base64
import json
import statistics
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
from driftline.contracts.words import AttemptState, JobKind, JobState, Layout, RunState
from driftline_service.clock import now_utc
from driftline_service.database.engine import Sessions, make_engine, make_sessions
from driftline_service.database.tables import Attempt, ClaimToken, Job, Run
from driftline_service.dispatch import tokens
from driftline_service.runs.submission import Commit, NewRun, submit
from sqlalchemy import select, update

sys.path.insert(0, str(Path(__file__).resolve().parent))

from load_answers import QUESTIONS, answers, forced, lane, scores
from load_place import Figure, new_database, parser, service, tell

WANTED_SECONDS = 1.0


def new_run(number: int) -> NewRun:
    """A run of one lane between commits that no other run has."""
    shas = {"base": f"{number:040x}", "head": f"{number + (1 << 40):040x}"}
    arms = {arm: Commit(ref=arm, sha=sha, subject=arm, kernel_path="k", kernel_tree=sha) for arm, sha in shas.items()}
    return NewRun(
        name=f"run {number}", repository_url="https://example.org/kernels.git", main_branch="main",
        layout=Layout.MAMBA2_VARLEN, lanes=(lane("granite V1"),), margin=0.025, created_by="a benchmark", **arms,
    )  # fmt: skip


def evaluating(sessions: Sessions, number: int) -> tuple[UUID, str]:
    """A run whose builds and checks are as if done: one evaluation's job, and a token to claim it."""
    now = now_utc()
    with sessions.begin() as session:
        run_id = submit(session, new_run(number))
        for job in session.scalars(select(Job).where(Job.run_id == run_id, Job.kind != JobKind.EVALUATE)):
            attempt = Attempt(job_id=job.id, number=1, state=AttemptState.SUCCEEDED, worker_name="w", worker={},
                              environment_id="e", token_hash=uuid4().hex, lease_until=now, finished_at=now)  # fmt: skip
            session.add(attempt)
            session.flush()
            job.adopted_attempt_id, job.state, job.finished_at = attempt.id, JobState.SUCCEEDED, now
        session.execute(update(Run).where(Run.id == run_id).values(state=RunState.EVALUATING, started_at=now))
        job = session.scalars(select(Job).where(Job.run_id == run_id, Job.kind == JobKind.EVALUATE)).first()
        assert job is not None
        token = tokens.mint()
        session.add(ClaimToken(token_hash=token.hash, job_id=job.id, expires_at=now + timedelta(hours=1)))
        return job.id, token.secret


def lines() -> list[dict[str, Any]]:
    """What a child of the lane says."""
    said: list[dict[str, Any]] = [{"type": "environment", "must_match": {"model": "granite@1"}, "recorded": {}}]
    said += [
        {"type": "sample", "doc_id": each.doc_id, "rank": each.rank, "question": each.question, "target": each.target,
         "response": each.response, "finish_reason": "stop", "prompt_tokens": 900, "response_tokens": 90}
        | {f"{part}_hash": each.digest(part) for part in ("doc", "prompt", "target")}
        for each in answers(1)
    ]  # fmt: skip
    said += [
        {"type": "teacher_forced", "doc_id": doc_id, "logprobs": base64.b64encode(values).decode(), "prompt_tokens": scored,
         "answer_tokens": len(values) // 4 - scored}
        for doc_id, scored, values in forced(1)
    ]  # fmt: skip
    return [*said, scores(1)]


def seconds_to_store(client: httpx.Client, job_id: UUID, token: str, batches: list[bytes]) -> float:
    facts = {"name": "w", "host": "h", "environment_id": "e", "sandbox": "bubblewrap"}
    claim = _post(client, f"/jobs/{job_id}/claim", token, json.dumps({"worker": facts}).encode())
    path, token = f"/attempts/{claim['attempt_id']}", claim["attempt_token"]
    started = time.perf_counter()
    for batch in batches:
        _post(client, f"{path}/lines", token, batch)
    end = {"outcome": "succeeded", "batches": len(batches)}
    answer = _post(client, f"{path}/finish", token, json.dumps(end).encode())
    took = time.perf_counter() - started
    assert answer["action"] == "continue", answer
    return took


def _post(client: httpx.Client, path: str, token: str, body: bytes) -> dict[str, Any]:
    answer = client.post(f"/worker/v1{path}", content=body, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == httpx.codes.OK, answer.text[:500]
    found: dict[str, Any] = answer.json()
    return found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--times", type=int, default=5, help="evaluations; default %(default)s")
    options.add_argument("--batch", type=int, default=400, help="lines of one request; default %(default)s")
    chosen = options.parse_args()
    said = lines()
    batches = [
        json.dumps({"sequence": number, "lines": said[at : at + chosen.batch]}).encode()
        for number, at in enumerate(range(0, len(said), chosen.batch))
    ]
    print(f"{QUESTIONS} questions, {len(batches)} requests, {sum(map(len, batches)) / 1e6:.1f} MB")
    with new_database(chosen.server) as url, service(url) as client:
        engine = make_engine(url)
        sessions = make_sessions(engine)
        took = [seconds_to_store(client, *evaluating(sessions, number), batches) for number in range(chosen.times + 1)]
        engine.dispose()
    tell([Figure(f"an evaluation stored, median of {chosen.times}", statistics.median(took[1:]), WANTED_SECONDS, "s")])


if __name__ == "__main__":
    main()
