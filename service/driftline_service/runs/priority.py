"""Who is served first, where work waits. It follows from who made a run, so nothing of it is stored."""

from enum import IntEnum

from sqlalchemy import ColumnElement, case, select

from driftline_service.database.tables import GithubRun, Run

MAIN_KEY = "github:main:"
"""How the idempotency key of a run begins that a push to the main branch made."""


class Priority(IntEnum):
    """The smaller the sooner. The numbers are Celery's own steps for Redis: each is a list, read in this order."""

    PULL_REQUEST = 0
    """somebody waits for a check"""
    SUBMISSION = 3
    """somebody asked by hand or from a program"""
    MAIN = 6
    """baselines, which nobody waits for"""


def priority_of(run: type[Run]) -> ColumnElement[int]:
    """The priority of a row of `runs`."""
    of_a_pull = select(GithubRun.run_id).where(GithubRun.run_id == run.id).exists()
    return case(
        (of_a_pull, int(Priority.PULL_REQUEST)),
        (run.idempotency_key.startswith(MAIN_KEY, autoescape=True), int(Priority.MAIN)),
        else_=int(Priority.SUBMISSION),
    )
