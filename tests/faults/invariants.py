"""What must hold of a run once it is over, whatever went wrong on its way. Each check gives sentences about what does not."""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

PATH = ("run_submitted", "run_building", "run_checking", "run_evaluating", "run_judging", "run_done")
"""The events of a run that nothing stopped, each once and in this order."""

ENDS = ("run_cancelled", "run_failed", "run_superseded", "run_done")
FINGERPRINT = """
select md5(string_agg(whole, '' order by whole)) as print from (
  select runs::text as whole from runs where id = any(%(ids)s)
  union all select jobs::text from jobs where run_id = any(%(ids)s)
  union all select attempts::text from attempts join jobs on jobs.id = job_id where run_id = any(%(ids)s)
  union all select samples::text from samples join attempts on attempts.id = attempt_id
    join jobs on jobs.id = job_id where run_id = any(%(ids)s)
  union all select events::text from events where run_id = any(%(ids)s)) rows"""

Rows = list[dict[str, Any]]


class Books:
    """A stack's database, read."""

    def __init__(self, url: str) -> None:
        self._url = url.replace("postgresql+psycopg://", "postgresql://")

    def rows(self, query: str, **values: object) -> Rows:
        with psycopg.connect(self._url, row_factory=dict_row) as connection:
            return connection.execute(query, values).fetchall()

    def fingerprint(self, run_ids: list[UUID]) -> str:
        """Of every row of these runs: the same as long as nothing of them changes."""
        return str(self.rows(FINGERPRINT, ids=run_ids)[0]["print"])

    def states(self, run_ids: list[UUID]) -> list[str] | None:
        """None while the database is away."""
        try:
            return [
                str(row["state"]) for row in self.rows("select state from runs where id = any(%(ids)s)", ids=run_ids)
            ]
        except psycopg.Error:
            return None

    def unsent(self) -> int:
        return int(self.rows("select count(*) as n from outbox where sent_at is null")[0]["n"])

    def problems(self, run_id: UUID, *, questions: int, may_be_cancelled: bool) -> list[str]:
        """Sentences; none if all holds."""
        run = self.rows("select * from runs where id = %(id)s", id=run_id)[0]
        jobs = self.rows("select * from jobs where run_id = %(id)s", id=run_id)
        attempts = self.rows(
            "select attempts.* from attempts join jobs on jobs.id = job_id where run_id = %(id)s", id=run_id
        )
        events = self.rows("select * from events where run_id = %(id)s order by id", id=run_id)
        cancelled = run["state"] == "cancelled" and may_be_cancelled
        found = [] if cancelled or run["state"] == "done" else [f"the run is {run['state']}: {run['failure_message']}"]
        found += _of_jobs(jobs, attempts, cancelled)
        found += _of_events(run, jobs, attempts, events)
        if run["state"] == "done":
            found += _of_view(run["view"], questions)
            found += self._of_answers(jobs, attempts, questions)
        return found

    def _of_answers(self, jobs: Rows, attempts: Rows, questions: int) -> Iterator[str]:
        adopted = {job["adopted_attempt_id"]: job for job in jobs if job["kind"] == "evaluate"}
        query = """select attempt_id, count(*) as n, count(distinct doc_id) as docs, min(rank) as first, max(rank) as last
          from samples where attempt_id = any(%(ids)s) group by attempt_id"""
        everyone = list({*adopted, *(one["id"] for one in attempts)})
        counted = {row["attempt_id"]: row for row in self.rows(query, ids=everyone)}
        forced = (
            "select attempt_id, count(*) as n from teacher_forced where attempt_id = any(%(ids)s) group by attempt_id"
        )
        passes = {row["attempt_id"]: row["n"] for row in self.rows(forced, ids=everyone)}
        for attempt_id, job in adopted.items():
            row = counted.get(attempt_id, {"n": 0, "docs": 0, "first": None, "last": None})
            if (row["n"], row["docs"], row["first"], row["last"]) != (questions, questions, 0, questions - 1):
                yield f"evaluate {job['arm']}: of {questions} questions its adopted attempt has {row}"
            if passes.get(attempt_id) != questions:
                yield f"evaluate {job['arm']}: {passes.get(attempt_id)} teacher-forced passes of {questions}"
        for attempt in attempts:
            if attempt["id"] not in adopted and attempt["id"] in counted:
                yield f"attempt {attempt['number']} was not adopted ({attempt['state']}) and keeps its answers"


def _of_jobs(jobs: Rows, attempts: Rows, cancelled: bool) -> Iterator[str]:
    for job in jobs:
        name = f"{job['kind']} {job['arm']}"
        own = [one for one in attempts if one["job_id"] == job["id"]]
        good = [one["id"] for one in own if one["state"] == "succeeded"]
        told = [(one["state"], one["failure_reason"]) for one in own]
        if job["state"] != "succeeded" and not (cancelled and job["state"] == "cancelled"):
            yield f"{name} is {job['state']} after {told}"
        if job["state"] == "succeeded" and job["reused_from_job_id"] is None and good != [job["adopted_attempt_id"]]:
            yield f"{name} adopted {job['adopted_attempt_id']}, and {good} succeeded"
        if job["state"] == "succeeded" and job["reused_from_job_id"] is not None and own:
            yield f"{name} was reused and has attempts: {told}"
        if job["state"] != "succeeded" and good:
            yield f"{name} is {job['state']}, though an attempt of it succeeded"
        if any(one["state"] == "running" for one in own):
            yield f"{name} is {job['state']} and an attempt of it is running"
        if sorted(one["number"] for one in own) != list(range(1, len(own) + 1)):
            yield f"{name}: its attempts are not numbered one after the other"


def _of_events(run: dict[str, Any], jobs: Rows, attempts: Rows, events: Rows) -> Iterator[str]:
    kinds = Counter(event["kind"] for event in events)
    path = tuple(event["kind"] for event in events if event["kind"].startswith("run_"))
    whole = path == PATH if run["state"] == "done" else path[:-1] == PATH[: len(path) - 1] and path[-1] in ENDS
    if not whole:
        yield f"the run's events are {path}"
    states = Counter(one["state"] for one in attempts)
    expected = {
        "job_claimed": len(attempts), "attempt_failed": states["failed"], "attempt_lost": states["lost"],
        "job_succeeded": sum(job["state"] == "succeeded" and job["reused_from_job_id"] is None for job in jobs),
        "job_reused": sum(job["reused_from_job_id"] is not None for job in jobs),
        "job_failed": sum(job["state"] == "failed" for job in jobs),
    }  # fmt: skip
    for kind, count in expected.items():
        if kinds[kind] != count:
            yield f"{kinds[kind]} events {kind}, and {count} such rows"


def _of_view(view: dict[str, Any] | None, questions: int) -> Iterator[str]:
    if view is None:
        yield "the run is done and has no view"
        return
    for lane in view["lanes"]:
        for arm in lane["health"]:
            if (arm["questions"], arm["missing"], arm["duplicates"]) != (questions, 0, 0):
                yield f"{lane['name']}: the health of {arm['arm']} is {arm}"
        if {(cell["n"], cell["lost"] or 0, cell["gained"] or 0) for cell in lane["comparisons"]} != {(questions, 0, 0)}:
            yield f"{lane['name']}: equal answers on {questions} questions compare as {lane['comparisons']}"
    if view["kernel_check"]["result"] != "passed":
        yield f"the kernel check is {view['kernel_check']}"
