"""How an attempt ended, as a value. The reasons that a worker itself can give are listed here."""

from dataclasses import dataclass
from typing import Literal, get_args

from driftline.contracts.base import MESSAGE_CHARACTERS
from driftline.contracts.words import FailureKind
from driftline.git.errors import Reason as GitReason

Reason = Literal[
    "child_died", "child_silent", "child_too_slow", "cpu_limit", "garbage_output", "flooded_channel", "flooded_output",
    "lines_lost",
    "out_of_memory", "disk_full", "scratch_full", "too_many_processes", "worker_stopped", "model_missing", "dataset_missing",
    "dataset_changed", "environment_refused", "environment_missing", "remote_code_missing", "gpu_busy",
    "release_unknown", "compiled_sources_changed",
    "report_refused", "worker_error", "worker_died",
]  # fmt: skip


WORKERS_WORDS = frozenset(get_args(Reason)).union(get_args(GitReason)) - {"out_of_memory"}
"""What a child cannot know. The service draws conclusions from these, so a child that uses one is not quoted as is."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    dropped: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failed:
    """`reason` is one of Reason, of git's, or the child's own word."""

    kind: FailureKind
    reason: str
    message: str
    dropped: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Nobody waits for this attempt any more: its lease is gone or its job was cancelled. Nothing is reported."""

    why: str


Ending = Succeeded | Failed | Abandoned


class CannotRun(Exception):  # noqa: N818 - what it is
    """A job that cannot even start: what it needs is missing or not as agreed."""

    def __init__(self, kind: FailureKind, reason: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason


def childs_word(reason: str) -> str:
    """A child's own reason, told apart from a worker's."""
    return f"child_{reason}" if reason in WORKERS_WORDS else reason


def clipped(message: str, characters: int = MESSAGE_CHARACTERS) -> str:
    """A message as the contract and PostgreSQL can hold it: its beginning and, where errors tell most, its end."""
    clean = message.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
    if len(clean) <= characters:
        return clean
    gap = "\n[…]\n"
    head = (characters - len(gap)) // 4
    return clean[:head] + gap + clean[len(clean) - (characters - len(gap) - head) :]
