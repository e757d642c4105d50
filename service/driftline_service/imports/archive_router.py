"""POST /api/v1/imports: an archive of lm-eval's files is reported. Its body is the only large one of the public API."""

from typing import Annotated, Any

from driftline.contracts.imports import ImportRequest, ImportView
from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from driftline_service.api import problems
from driftline_service.api.context import ContextDep, SubmitterDep
from driftline_service.imports.intake import take_in
from driftline_service.imports.views import import_view
from driftline_service.logs import logger

router = APIRouter(prefix="/api/v1/imports", tags=["imports"])

TAR = "application/x-tar"
AGAIN: dict[int | str, dict[str, Any]] = {200: {"model": ImportView, "description": "The same files were here before"}}

_log = logger("driftline.imports")


@router.post(
    "",
    status_code=201,
    responses=problems.responses(401, 403, 409, 413, 422, 503, 507) | AGAIN,
    openapi_extra={
        "requestBody": {"required": True, "content": {TAR: {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def import_archive(
    who: SubmitterDep,
    request: Request,
    wanted: Annotated[ImportRequest, Query()],
    found: ContextDep,
    response: Response,
) -> ImportView:
    """Report an evaluation: a tar archive (plain or compressed) of lm-eval's results_*.json and samples_*.jsonl[.gz].

    The same files again give the same import, with status 200. Nothing is stored unless everything is.
    """
    stored = await take_in(request.stream(), wanted, found, actor=who.name)
    _log.info("import_reported", import_id=str(stored.import_id), created=stored.created, lane=wanted.lane)
    response.status_code = 201 if stored.created else 200
    response.headers["Location"] = f"/api/v1/imports/{stored.import_id}"

    def view() -> ImportView:
        with found.sessions() as session:
            return import_view(session, stored.import_id, found.settings.public_url)

    return await run_in_threadpool(view)
