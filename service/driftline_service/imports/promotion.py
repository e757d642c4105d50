"""An admin's decisions on an import: promote it to a baseline, demote it, withdraw it. Each goes into the event log."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from driftline.contracts.imports import DecisionRequest, PromoteRequest
from driftline.contracts.lane import Lane
from driftline.questions import fixed_order
from sqlalchemy.orm import Session

from driftline_service.database import import_queries, worker_queries
from driftline_service.database.tables import Import, ImportKind
from driftline_service.intake.refusal import Refusal
from driftline_service.lanes import Lanes
from driftline_service.runs.planner import hash_lane

FULL_SHA = 40


def promote(session: Session, import_id: UUID, request: PromoteRequest, lanes: Lanes, now: datetime) -> Import:
    """Let the import stand for base arms of its commit, on its lane as configured now, in one worker environment.

    Doing it again changes nothing. The caller commits.

    Raises:
        Refusal: unknown_import, withdrawn, no_samples, no_repository, abbreviated_commit, unknown_lane,
            questions_missing, lane_differs, unknown_environment, already_promoted or another_baseline.
    """
    found = _locked(session, import_id)
    lane = _fitting_lane(session, found, lanes)
    environment = request.environment_id or _environment(session, lane)
    lane_hash = hash_lane(lane)
    if found.promoted_at is not None:
        if (found.environment_id, found.lane_hash) == (environment, lane_hash):
            return found
        detail = f"import {found.id} is a baseline of environment {found.environment_id!r} already; demote it first"
        raise Refusal("already_promoted", detail, status=409)
    other = import_queries.other_baseline(session, found, lane_hash=lane_hash, environment_id=environment)
    if other is not None:
        detail = f"import {other.id} is the baseline of this commit, lane and environment; demote it first"
        raise Refusal("another_baseline", detail, status=409)
    found.promoted_at, found.promoted_by = now, request.decided_by
    found.environment_id, found.lane_hash = environment, lane_hash
    told = f"{request.decided_by} made it a baseline in environment {environment}: {request.reason}"
    import_queries.record_import(session, found.id, "import_promoted", told)
    return found


def demote(session: Session, import_id: UUID, request: DecisionRequest) -> Import:
    """The import stands for no further base arm. Verdicts that were given keep what they were given on.

    Raises:
        Refusal: unknown_import or not_promoted.
    """
    found = _locked(session, import_id)
    if found.promoted_at is None:
        raise Refusal("not_promoted", f"import {found.id} is no baseline; there is nothing to take back", status=409)
    found.promoted_at = found.promoted_by = found.environment_id = found.lane_hash = None
    told = f"{request.decided_by} made it a baseline no more: {request.reason}"
    import_queries.record_import(session, found.id, "import_demoted", told)
    return found


def withdraw(session: Session, import_id: UUID, request: DecisionRequest, now: datetime) -> Import:
    """Take an import out of the history. Its rows stay, for the log; the same files may be imported anew.

    Raises:
        Refusal: unknown_import, withdrawn, or is_baseline if it must be demoted first.
    """
    found = _locked(session, import_id)
    _refuse_withdrawn(found)
    if found.promoted_at is not None:
        raise Refusal("is_baseline", f"import {found.id} is a baseline; demote it first", status=409)
    found.withdrawn_at = now
    told = f"{request.decided_by} withdrew it: {request.reason}"
    import_queries.record_import(session, found.id, "import_withdrawn", told)
    return found


def unknown_import(import_id: object) -> Refusal:
    return Refusal("unknown_import", f"there is no import {import_id}; GET /api/v1/imports lists them", status=404)


def stated_differences(facts: Mapping[str, str], must_match: Mapping[str, str]) -> list[str]:
    """The names under which what an import states differs from what was measured; unstated ones were vouched for."""
    return sorted(name for name in facts.keys() & must_match.keys() if facts[name] != must_match[name])


def _locked(session: Session, import_id: UUID) -> Import:
    found = import_queries.lock_import(session, import_id)
    if found is None:
        raise unknown_import(import_id)
    return found


def _refuse_withdrawn(found: Import) -> None:
    if found.withdrawn_at is not None:
        raise Refusal("withdrawn", f"import {found.id} was withdrawn; import the files anew", status=409)


def _fitting_lane(session: Session, found: Import, lanes: Lanes) -> Lane:
    """The configured lane, if everything a base arm of it needs is there."""
    _refuse_withdrawn(found)
    if found.kind is ImportKind.FIGURES:
        raise Refusal("no_samples", f"import {found.id} is only figures: without samples nothing is compared by pairs")
    if found.repository is None:
        again = "withdraw it and import the files again with --repo"
        raise Refusal("no_repository", f"import {found.id} names no repository, so no run can look for it; {again}")
    if len(found.commit_sha) < FULL_SHA:
        detail = f"import {found.id} names its commit as {found.commit_sha}: withdraw it and give all 40 digits"
        raise Refusal("abbreviated_commit", detail)
    lane = lanes.named(found.lane_name)
    if lane is None:
        detail = f"lane {found.lane_name!r} is not configured any more; there are {', '.join(map(repr, lanes.names))}"
        raise Refusal("unknown_lane", detail)
    asked = set(fixed_order(lane.task.total_questions, lane.questions))
    missing = asked - import_queries.doc_ids_of(session, found.id)
    if missing:
        detail = f"lane {lane.name!r} asks {len(asked)} questions, import {found.id} lacks {len(missing)} of them"
        raise Refusal("questions_missing", detail)
    differing = stated_differences(dict(found.facts), _lane_facts(lane))
    if differing:
        raise Refusal(
            "lane_differs", f"import {found.id} says itself that it is not lane {lane.name!r}: {', '.join(differing)}"
        )
    return lane


def _lane_facts(lane: Lane) -> dict[str, str]:
    """What the lane itself decides of the comparability key."""
    facts = {"task": lane.task.name, "engine": lane.engine.value}
    shots = lane.engine_arguments.get("num_fewshot")
    return facts if shots is None else facts | {"num_fewshot": str(shots)}


def _environment(session: Session, lane: Lane) -> str:
    found = worker_queries.latest_environment(session, lane.gpu_type)
    if found is None:
        detail = f"no worker that serves lane {lane.name!r} was ever seen; name its environment with environment_id"
        raise Refusal("unknown_environment", detail)
    return found
