"""The states of a change point, apart from its contract: the command line names them before it loads anything else."""

from enum import StrEnum


class ChangeState(StrEnum):
    """What is known and decided of a change point."""

    DETECTED = "detected"
    CONFIRMED = "confirmed"
    ACKNOWLEDGED = "acknowledged"
    IGNORED = "ignored"
    FIXED = "fixed"
