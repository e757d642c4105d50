"""The composition root: settings become one FastAPI application. Nothing else wires parts together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import driftline
from fastapi import FastAPI

from driftline_service import pages, worker_api
from driftline_service.api import (
    health,
    lanes,
    metrics,
    problems,
    repeats,
    run_detail,
    run_events,
    run_list,
    run_submission,
    tokens,
    workers,
)  # fmt: skip
from driftline_service.api.body_limit import BodyLimit, BodyLimits
from driftline_service.api.context import Context, ReadDep
from driftline_service.api.hang_up import HangUp
from driftline_service.api.host_check import HostCheck
from driftline_service.api.openapi import document_errors
from driftline_service.api.rate_limit import Buckets, RateLimit
from driftline_service.api.safe_headers import SafeHeaders
from driftline_service.api.wakeups import Wakeups
from driftline_service.auth.hosts import HostRule
from driftline_service.auth.token import AdminToken
from driftline_service.bisects import router as bisect_router
from driftline_service.database.engine import make_engine, make_sessions
from driftline_service.github import webhook
from driftline_service.github.deliveries import Deliveries
from driftline_service.github.sources import Sources
from driftline_service.imports import archive_router, history_router, import_router
from driftline_service.lanes import read_lanes
from driftline_service.metrics.served import RequestTimes, Served
from driftline_service.pages import api_page, bisect_pages, fleet_page, login_pages
from driftline_service.pages import history_router as lane_pages
from driftline_service.settings import Settings

PARTS = (
    run_submission, run_list, run_detail, run_events, archive_router, import_router, history_router, lanes, workers, tokens,
    repeats, bisect_router, pages, lane_pages, bisect_pages, fleet_page,
)  # fmt: skip
"""Each has a `router`. Whoever adds one, adds it here. In a private service all of them ask for a token."""

OPEN_PARTS = (webhook, worker_api, health, metrics, login_pages, api_page)
"""Those that ask for their own kind of token, or for none: GitHub, workers, Prometheus, and the login page. They come first,
the busiest before the others: a request is compared with one router after the other."""

DESCRIPTION = """Did this commit move the model's accuracy away from main?

Submit a run with `POST /api/v1/runs`, follow it under `/events`, read its `/report`. Reading is open
unless the service is private; writing needs a token as bearer,
of scope `submit` or `admin`. Every error is `application/problem+json` with a `reason` for programs."""


def create_app(settings: Settings) -> FastAPI:
    """The application of one process.

    Raises:
        ConfigurationError: if driftline.toml cannot be used.
    """
    engine = make_engine(settings.database_url.get_secret_value())
    context = Context(
        settings=settings, lanes=read_lanes(settings.config_path), sessions=make_sessions(engine),
        admin=AdminToken.of(settings), wakeups=Wakeups(_dsn(settings)),
        served=Served(), deliveries=Deliveries(_dsn(settings)),
    )  # fmt: skip

    buckets = Buckets(settings.broker_url.get_secret_value()) if settings.rates else None

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        listening = asyncio.create_task(context.wakeups.listen())
        yield
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        await context.deliveries.close()
        engine.dispose()
        if buckets is not None:
            await buckets.close()

    app = FastAPI(
        title="Driftline", version=driftline.__version__, description=DESCRIPTION, lifespan=lifespan,
        docs_url=None, redoc_url=None,  # FastAPI's own pages load scripts from elsewhere; pages.api_page does not
    )  # fmt: skip
    app.state.context = context
    app.state.settings = settings
    app.state.sources = Sources.of(settings)
    app.state.sessions = context.sessions
    app.state.served = context.served
    problems.register(app)
    for part in OPEN_PARTS:
        app.include_router(part.router)
    for part in PARTS:
        app.include_router(part.router, dependencies=[ReadDep])
    document_errors(app)
    app.add_middleware(HangUp)
    app.add_middleware(
        BodyLimit, limits=BodyLimits(settings.max_body_bytes, settings.max_worker_body_bytes, settings.max_import_bytes)
    )
    if buckets is not None:
        app.add_middleware(RateLimit, rates=settings.rates, buckets=buckets)
    app.add_middleware(HostCheck, rule=HostRule.of(settings))
    app.add_middleware(SafeHeaders)
    app.add_middleware(RequestTimes, served=context.served)
    return app


def _dsn(settings: Settings) -> str:
    """SQLAlchemy's URL as libpq reads it."""
    return settings.database_url.get_secret_value().replace("postgresql+psycopg://", "postgresql://", 1)
