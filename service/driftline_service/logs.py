"""Structured logs: one JSON object a line on stderr, with the run and job it is about."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from uuid import UUID

import structlog


def configure(*, format: Literal["json", "console"], level: str) -> None:  # noqa: A002 - the setting's own name
    """Send structlog's and the standard library's records the same way. Called once, by each process's entry."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_last(format)))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _last(format: Literal["json", "console"]) -> list[structlog.typing.Processor]:  # noqa: A002
    drop = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if format == "json":
        return [drop, structlog.processors.JSONRenderer()]
    return [drop, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]


def logger(name: str) -> structlog.stdlib.BoundLogger:
    bound: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return bound


@contextmanager
def about(*, run_id: UUID | str | None = None, job_id: UUID | str | None = None) -> Iterator[None]:
    """Every record inside carries these ids."""
    ids = {key: str(value) for key, value in {"run_id": run_id, "job_id": job_id}.items() if value is not None}
    with structlog.contextvars.bound_contextvars(**ids):
        yield
