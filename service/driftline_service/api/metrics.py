"""GET /metrics for Prometheus: the queue's state from the database, and what this process served."""

from datetime import UTC, datetime

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from driftline_service.api import problems
from driftline_service.api.context import ContextDep
from driftline_service.metrics.state import QueueState

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=Response, responses=problems.responses(503))
def metrics(context: ContextDep) -> Response:
    """Text that Prometheus reads. docs/operations.md says what each figure means and when to worry."""
    queue = CollectorRegistry()
    queue.register(QueueState(context.sessions, lambda: datetime.now(UTC)))
    body = generate_latest(queue) + generate_latest(context.served.registry)
    return Response(body, media_type=CONTENT_TYPE_LATEST)
