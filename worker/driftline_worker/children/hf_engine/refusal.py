"""Why an evaluation cannot be made, as one exception that becomes the child's `failure` line."""

PERMANENT = "permanent"
TRANSIENT = "transient"
UNSUPPORTED = "unsupported"


class Refusal(Exception):
    """An expected end without a score. `kind` and `reason` are the words of the failure line."""

    def __init__(self, kind: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason
        self.message = message


def permanent(reason: str, message: str) -> Refusal:
    """A refusal that a new attempt would only repeat."""
    return Refusal(PERMANENT, reason, message)
