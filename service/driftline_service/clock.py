"""The present, as every process of the service reads it."""

from datetime import UTC, datetime


def now_utc() -> datetime:
    return datetime.now(UTC)
