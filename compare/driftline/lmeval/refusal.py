"""The one way in which lm-eval's files are refused."""


class BadOutputError(ValueError):
    """A file that cannot be read as lm-eval's output. `reason` is a code; the message names the file and the remedy."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
