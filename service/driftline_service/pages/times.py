"""How spans of time are written on pages."""

from datetime import datetime

from driftline.report.figures import UNKNOWN

MINUTE, HOUR, DAY = 60, 3600, 86400
"""seconds"""


def span(start: datetime | None, end: datetime | None) -> str:
    """From start to end in at most two units, e.g. `6 min 12 s`; a dash if either is unknown."""
    if start is None or end is None:
        return UNKNOWN
    seconds = max(0, int((end - start).total_seconds()))
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return _pair(seconds, MINUTE, "min", "s")
    if seconds < DAY:
        return _pair(seconds // MINUTE, HOUR // MINUTE, "h", "min")
    return _pair(seconds // HOUR, DAY // HOUR, "d", "h")


def about(seconds: float) -> str:
    """A forecast, never finer than it is worth: `under a minute`, `4 min`, `2 h 10 min`."""
    if seconds < MINUTE:
        return "under a minute"
    minutes = round(seconds / MINUTE)
    if minutes < HOUR // MINUTE:
        return f"{minutes} min"
    return _pair(10 * round(minutes / 10), HOUR // MINUTE, "h", "min")


def _pair(count: int, per: int, unit: str, smaller: str) -> str:
    whole, rest = divmod(count, per)
    return f"{whole} {unit} {rest} {smaller}" if rest else f"{whole} {unit}"


def stamp(moment: datetime | None) -> str:
    """A moment in UTC, to the second; readers of one run sit in several zones."""
    return UNKNOWN if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"
