"""/healthz: the process lives. /readyz: it can serve, which takes a database that answers."""

from driftline.contracts.base import Contract
from fastapi import APIRouter
from sqlalchemy import text

from driftline_service.api import problems
from driftline_service.api.context import SessionDep

router = APIRouter(tags=["health"])


class Health(Contract):
    status: str


@router.get("/healthz")
async def healthz() -> Health:
    """Answers as long as the process can answer anything."""
    return Health(status="ok")


@router.get("/readyz", responses=problems.responses(503))
def readyz(session: SessionDep) -> Health:
    """Answers 200 if the database does, else a 503 problem."""
    session.execute(text("select 1"))
    return Health(status="ready")
