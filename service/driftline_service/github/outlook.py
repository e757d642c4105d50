"""What is known of a run before anything is measured: its place in the queue, and which drop it can see."""

from typing import NamedTuple
from uuid import UUID

from driftline.contracts.lane import Lane
from driftline.judge.cell import ALPHA
from driftline.judge.cells import CELLS_A_LANE
from driftline.statistics.power import smallest_visible_drop
from sqlalchemy.orm import Session

from driftline_service.database import job_queries, run_queries


class Outlook(NamedTuple):
    """Of a run that is not finished."""

    before: int
    """runs that are served before it on the same queues"""
    visible: float | None
    """the smallest drop, a fraction, that its weakest lane would find if no other answer changes; None: no lane can"""


def outlook(session: Session, run_id: UUID) -> Outlook:
    """As of now."""
    rows = run_queries.lanes_of(session, run_id)
    asked = [Lane.model_validate(row.lane).questions for row in rows if not (row.identical or row.unreachable)]
    return Outlook(job_queries.runs_before(session, run_id), smallest_visible(asked))


def smallest_visible(questions: list[int]) -> float | None:
    """Over lanes that ask so many questions each: that of the one which asks the fewest."""
    if not questions:
        return None
    return smallest_visible_drop(0, 0, min(questions), alpha=ALPHA / (CELLS_A_LANE * len(questions)))
