"""Whose fault a failed arm is: the commit's, or that of a worker, its files or a lane's configuration."""

from typing import Final

from driftline.contracts.words import FailureKind
from driftline.evidence import ArmFailure

NOT_THE_COMMITS: Final = frozenset(
    {
        "arguments_refused", "bad_spec", "dataset_changed", "dataset_missing", "device_broken",
        "driver_mismatch", "environment_broken", "environment_mismatch", "environment_missing",
        "environment_refused", "gpu_busy", "gpu_memory_taken", "hub_refused", "hub_unreachable", "model_missing",
        "model_too_long", "model_unloadable", "model_unsupported", "no_gpu", "no_vllm", "ops_unknown",
        "ops_unserved", "port_taken", "pytest_missing", "remote_code_missing", "remote_code_refused",
        "report_refused", "task_invalid", "weights_broken", "worker_error", "wrong_dtype",
    }
)  # fmt: skip
"""Reasons that speak of a worker, its files or a lane's configuration: no commit is blamed for them."""


def is_heads_fault(head: ArmFailure) -> bool:
    """A permanent failure, or one that came back on the worker on which base succeeded; not one of the worker's own."""
    if head.reason in NOT_THE_COMMITS:
        return False
    return head.kind is FailureKind.PERMANENT or (head.same_worker_as_base and head.attempts > 1)


def in_words(failure: ArmFailure) -> str:
    """The failure in one line. What follows in its message, a traceback or what a child printed, is on the job."""
    return f"{failure.message.partition(chr(10))[0]} ({failure.reason})"
