"""Why an evaluation cannot be made: the exception of all children, which becomes the `failure` line."""

from ..kernel_child import Refusal

__all__ = ["Refusal", "permanent"]


def permanent(reason: str, message: str) -> Refusal:
    """A refusal that a new attempt would only repeat."""
    return Refusal("permanent", reason, message)
