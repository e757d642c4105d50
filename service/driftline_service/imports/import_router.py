"""The HTTP of imports: report, list, show, decide. What a report means is understood elsewhere."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from driftline.contracts.base import Contract, Name
from driftline.contracts.imports import (
    DecisionRequest,
    FiguresRequest,
    ImportDetail,
    ImportList,
    ImportView,
    PromoteRequest,
)
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from sqlalchemy import tuple_
from sqlalchemy.orm import Session

from driftline_service.api import problems
from driftline_service.api.context import AdminCallerDep, ContextDep, SessionDep, SubmitterDep
from driftline_service.database import audit, import_queries
from driftline_service.database.tables import Import
from driftline_service.imports import figures, promotion
from driftline_service.imports.promotion import unknown_import
from driftline_service.imports.storing import store
from driftline_service.imports.views import import_detail, import_view, import_views

router = APIRouter(prefix="/api/v1/imports", tags=["imports"])

LARGEST_PAGE = 200
AGAIN: dict[int | str, dict[str, Any]] = {200: {"model": ImportList, "description": "All points were here before"}}


class ImportFilter(Contract):
    """Which imports to list."""

    lane: Name | None = None
    commit: str | None = Field(default=None, pattern="^[0-9a-f]{4,40}$", description="beginning of the commit's SHA")
    before: UUID | None = Field(default=None, description="only imports older than this one")
    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE)


@router.post("/figures", status_code=201, responses=problems.responses(401, 403, 409, 413, 422, 503) | AGAIN)
def import_figures(who: SubmitterDep, body: FiguresRequest, found: ContextDep, response: Response) -> ImportList:
    """Report results without samples. All points are stored, or none; those that were there already are answered again."""
    reports = figures.understand(body, found.lanes)
    with found.sessions.begin() as session:
        stored = [store(session, report) for report in reports]
        for each in stored:
            if each.created:
                audit.note(session, who.name, "import_reported", each.import_id, reported_by=body.reported_by)
    response.status_code = 201 if any(each.created for each in stored) else 200
    with found.sessions() as session:
        views = [import_view(session, each.import_id, found.settings.public_url) for each in stored]
    return ImportList(imports=views, next=None)


@router.get("", responses=problems.responses(404, 422))
def list_imports(
    request: Request, session: SessionDep, found: ContextDep, wanted: Annotated[ImportFilter, Query()]
) -> ImportList:
    """Imports, newest first, withdrawn ones too. Follow `next` for older ones."""
    query = import_queries.list_imports(wanted.lane, wanted.commit)
    if wanted.before is not None:
        start = import_queries.import_by_id(session, wanted.before)
        if start is None:
            raise unknown_import(wanted.before)
        query = query.where(tuple_(Import.created_at, Import.id) < tuple_(start.created_at, start.id))
    rows = session.scalars(query.limit(wanted.limit + 1)).all()
    views = import_views(session, rows[: wanted.limit], found.settings.public_url)
    more = request.url.include_query_params(before=views[-1].import_id) if len(rows) > wanted.limit else None
    return ImportList(imports=views, next=f"{more.path}?{more.query}" if more else None)


@router.get("/{import_id}", responses=problems.responses(404, 422))
def show_import(import_id: UUID, session: SessionDep, found: ContextDep) -> ImportDetail:
    """One import, what its files state, and its log."""
    return import_detail(session, import_id, found.settings.public_url)


@router.post("/{import_id}/promote", responses=problems.responses(401, 403, 404, 409, 422))
def promote(who: AdminCallerDep, import_id: UUID, body: PromoteRequest, found: ContextDep) -> ImportView:
    """Let an import stand for base arms of its commit on its lane, in one worker environment. It goes into the log."""
    with found.sessions.begin() as session:
        promotion.promote(session, import_id, body, found.lanes, datetime.now(UTC))
        _note(session, who.name, "import_promoted", import_id, body)
    return _now(import_id, found)


@router.post("/{import_id}/demote", responses=problems.responses(401, 403, 404, 409, 422))
def demote(who: AdminCallerDep, import_id: UUID, body: DecisionRequest, found: ContextDep) -> ImportView:
    """The import stands for no further base arm. It goes into the log."""
    with found.sessions.begin() as session:
        promotion.demote(session, import_id, body)
        _note(session, who.name, "import_demoted", import_id, body)
    return _now(import_id, found)


@router.post("/{import_id}/withdraw", responses=problems.responses(401, 403, 404, 409, 422))
def withdraw(who: AdminCallerDep, import_id: UUID, body: DecisionRequest, found: ContextDep) -> ImportView:
    """Take a wrong import out of the history; its rows and its log stay, and the same files may be imported anew."""
    with found.sessions.begin() as session:
        promotion.withdraw(session, import_id, body, datetime.now(UTC))
        _note(session, who.name, "import_withdrawn", import_id, body)
    return _now(import_id, found)


def _note(session: Session, actor: str, action: str, import_id: UUID, body: DecisionRequest) -> None:
    """The token's name goes into the audit log beside what the person calls himself."""
    audit.note(session, actor, action, import_id, decided_by=body.decided_by, reason=body.reason)


def _now(import_id: UUID, found: ContextDep) -> ImportView:
    with found.sessions() as session:
        return import_view(session, import_id, found.settings.public_url)
