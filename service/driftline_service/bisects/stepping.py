"""Moves searches on: the reconciler's look at them. One look is one transaction, so a restart loses nothing.

A step is an ordinary run of commit against good. The first, of bad, asks all questions, so that good's evaluation serves
all later steps; these may stop early where the lane's engine can.
"""

from datetime import datetime
from uuid import UUID

from driftline.contracts.bisect import BisectCommit, BisectState, StepOutcome
from driftline.contracts.lane import Lane
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from driftline_service.bisects.outcome import outcome_of
from driftline_service.bisects.search import End, next_move
from driftline_service.database import bisect_queries, run_queries
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import Bisect, BisectStep, Run
from driftline_service.logs import logger
from driftline_service.runs.cancellation import cancel as cancel_run
from driftline_service.runs.submission import Commit, NewRun, submit

_log = logger("driftline.bisects")


def step_all(sessions: Sessions, now: datetime) -> None:
    """Look at every unfinished search. A bug in one ends it, named, and leaves the others running."""
    with sessions() as session:
        running = bisect_queries.running_ids(session)
    for bisect_id in running:
        try:
            with sessions.begin() as session:
                step(session, bisect_id, now)
        except DBAPIError:
            raise
        except Exception as error:
            _log.exception("a bisect could not be moved on", bisect_id=str(bisect_id))
            with sessions.begin() as session:
                if (bisect := bisect_queries.lock(session, bisect_id)) is not None and not bisect.state.finished:
                    end(bisect, BisectState.INCONCLUSIVE, f"internal_error: {type(error).__name__}: {error}", now)


def step(session: Session, bisect_id: UUID, now: datetime) -> bool:
    """Take in what the latest step's run came to, then begin the next step or end the search. False if it waits."""
    bisect = bisect_queries.lock(session, bisect_id)
    if bisect is None or bisect.state.finished:
        return False
    steps = bisect_queries.steps_of(session, bisect_id)
    for each in steps:
        if each.outcome is None and not _take_in(session, each):
            return False
    outcomes = {each.sha: each.outcome for each in steps if each.outcome is not None}
    move = next_move(good_of(bisect), commits_of(bisect), outcomes)
    if isinstance(move, End):
        end(bisect, BisectState.FOUND if move.first_bad else BisectState.INCONCLUSIVE, move.message, now)
        bisect.first_bad_sha = None if move.first_bad is None else move.first_bad.sha
        return True
    run_id = submit(session, _run(bisect, move.commit, first=not steps))
    session.add(BisectStep(bisect_id=bisect.id, number=len(steps) + 1, sha=move.commit.sha, run_id=run_id))
    return True


def cancel(session: Session, bisect_id: UUID, reason: str, now: datetime) -> bool:
    """Stop a search and the run of its open step; False if it is over already."""
    bisect = bisect_queries.lock(session, bisect_id)
    if bisect is None or bisect.state.finished:
        return False
    for each in bisect_queries.steps_of(session, bisect_id):
        if each.outcome is None:
            cancel_run(session, each.run_id, reason)
            each.outcome, each.why = StepOutcome.SKIPPED, reason
    end(bisect, BisectState.CANCELLED, reason, now)
    return True


def end(bisect: Bisect, state: BisectState, message: str, now: datetime) -> None:
    bisect.state, bisect.message, bisect.finished_at = state, message, now
    _log.info("bisect_ended", bisect_id=str(bisect.id), state=state.value, message=message)


def good_of(bisect: Bisect) -> BisectCommit:
    return BisectCommit.model_validate(bisect.good)


def commits_of(bisect: Bisect) -> list[BisectCommit]:
    return [BisectCommit.model_validate(each) for each in bisect.commits]


def _take_in(session: Session, step: BisectStep) -> bool:
    """Keep the outcome of a step whose run is over; False if it goes on."""
    if not run_queries.lock_run(session, step.run_id).state.finished:
        return False
    judged = outcome_of(session.get_one(Run, step.run_id))
    step.outcome, step.why = judged.outcome, judged.why
    return True


def _run(bisect: Bisect, commit: BisectCommit, *, first: bool) -> NewRun:
    return NewRun(
        name=f"bisect {str(bisect.id)[:8]}: {commit.subject}"[:200], repository_url=bisect.repository.url,
        main_branch=bisect.repository.main_branch, layout=bisect.layout, base=_arm(good_of(bisect)), head=_arm(commit),
        lanes=(Lane.model_validate(bisect.lane),), margin=bisect.margin, created_by=bisect.created_by,
        early_stopping=not first, confirm=False, idempotency_key=f"bisect:{bisect.id}:{commit.sha}",
    )  # fmt: skip


def _arm(commit: BisectCommit) -> Commit:
    return Commit(
        ref=commit.sha, sha=commit.sha, subject=commit.subject, kernel_path=commit.kernel_path,
        kernel_tree=commit.kernel_tree,
    )  # fmt: skip
