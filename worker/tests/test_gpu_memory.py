"""An engine waits for its share of a GPU, and does not wait for ever."""

import pytest
from driftline.contracts.lane import Lane
from driftline.contracts.words import FailureKind
from driftline_worker.ending import CannotRun
from driftline_worker.gpu_memory import GpuMemory, parse_memory, wait_for_memory

BUSY, IDLE = GpuMemory(7520, 143771), GpuMemory(143160, 143771)


def test_nvidia_smis_answer() -> None:
    assert parse_memory("143160, 143771\n7520, 143771\n[N/A], [N/A]\n\n") == [IDLE, BUSY]


def test_memory_that_comes_back_is_waited_for(lane: Lane) -> None:
    answers = [[BUSY], [IDLE]]
    wait_for_memory(lane, lambda: answers.pop(0), patience_seconds=30)
    assert answers == []


def test_memory_that_others_keep_is_no_fault_of_a_commit(lane: Lane) -> None:
    with pytest.raises(CannotRun, match=r"needs 90% of 1 GPUs, after 0 s: 7520 of 143771 MiB free") as refusal:
        wait_for_memory(lane, lambda: [BUSY], patience_seconds=0)
    assert (refusal.value.kind, refusal.value.reason) == (FailureKind.TRANSIENT, "gpu_busy")


def test_a_lane_for_gpus_that_are_not_there(lane: Lane) -> None:
    two = lane.model_copy(update={"engine_arguments": {"tensor_parallel_size": 2, "gpu_memory_utilization": 0.5}})
    with pytest.raises(CannotRun, match="wants 2 GPUs, nvidia-smi tells of 1") as refusal:
        wait_for_memory(two, lambda: [IDLE])
    assert (refusal.value.kind, refusal.value.reason) == (FailureKind.PERMANENT, "no_gpu")
    wait_for_memory(two, lambda: [IDLE, IDLE])
