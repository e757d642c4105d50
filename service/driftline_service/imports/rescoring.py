"""Stored responses of a run or an import scored again. It reads; nothing stored is changed."""

from collections.abc import Iterator
from uuid import UUID

from driftline.contracts.channel import Scores
from driftline.contracts.imports import RescoreReport
from driftline.contracts.words import JobKind
from driftline.scoring.rescoring import StoredAnswer, rescore, rescore_report
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, import_queries, job_queries, result_queries, run_queries
from driftline_service.database.storable import original
from driftline_service.database.tables import Attempt, ImportKind, Job
from driftline_service.imports.promotion import unknown_import
from driftline_service.intake.refusal import Refusal
from driftline_service.runs import planner


def rescore_run(session: Session, run_id: UUID) -> RescoreReport:
    """Every evaluation of the run that has scores, in the order of lanes, base before head.

    Raises:
        Refusal: unknown_run, or nothing_to_rescore while no evaluation is finished.
    """
    if run_queries.run_by_id(session, run_id) is None:
        raise Refusal("unknown_run", f"there is no run {run_id}; GET /api/v1/runs lists them", status=404)
    jobs = [job for job in planner.deciding(job_queries.jobs_of(session, run_id)) if job.kind is JobKind.EVALUATE]
    found = [(_name(job), answers) for job in sorted(jobs, key=_place) if (answers := _answers(session, job))]
    if not found:
        raise Refusal("nothing_to_rescore", f"run {run_id} has no finished evaluation", status=409)
    return rescore_report(rescore(name, answers) for name, answers in found)


def rescore_import(session: Session, import_id: UUID) -> RescoreReport:
    """The import's one evaluation.

    Raises:
        Refusal: unknown_import, or no_samples if it is only figures.
    """
    found = import_queries.import_by_id(session, import_id)
    if found is None:
        raise unknown_import(import_id)
    if found.kind is ImportKind.FIGURES:
        raise Refusal("no_samples", f"import {import_id} is only figures: it has no responses to score again")
    name = f"{found.lane_name} {found.commit_sha[:10]}"
    return rescore_report([rescore(name, import_queries.stored_answers(session, import_id))])


def _name(job: Job) -> str:
    return f"{job.lane_name} {job.arm.value}"


def _place(job: Job) -> tuple[str, str]:
    return job.lane_name or "", job.arm.value


def _answers(session: Session, job: Job) -> Iterator[StoredAnswer] | None:
    """The stored answers of one arm on one lane; None if it has none."""
    if job.import_id is not None:
        return import_queries.stored_answers(session, job.import_id)
    if job.adopted_attempt_id is None:
        return None
    attempt = attempt_queries.attempts_by_id(session, [job.adopted_attempt_id])[job.adopted_attempt_id]
    return None if attempt.scores is None else _of_attempt(session, attempt)


def _of_attempt(session: Session, attempt: Attempt) -> Iterator[StoredAnswer]:
    """lm-eval told which questions it scored 1; it scored the others 0."""
    right = {name: frozenset(ids) for name, ids in Scores.model_validate(attempt.scores).right.items()}
    for sample in result_queries.samples_of(session, attempt.id):
        scores = {name: float(sample.doc_id in ids) for name, ids in right.items()}
        yield StoredAnswer(sample.doc_id, original(sample.response), original(sample.target), scores)
