"""The one error of the intake: a request that cannot become a run, and why."""


class Refusal(Exception):  # noqa: N818 - what it is
    """A caller's mistake. `reason` is for programs, the message for people: it names the input and the remedy."""

    def __init__(self, reason: str, message: str, *, status: int = 422) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status
