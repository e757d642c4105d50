"""The one error of the intake: a request that cannot become a run, and why."""

from datetime import timedelta


class Refusal(Exception):  # noqa: N818 - what it is
    """A caller's mistake. `reason` is for programs, the message for people: it names the input and the remedy."""

    def __init__(self, reason: str, message: str, *, status: int = 422, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status
        self.retry_after = retry_after
