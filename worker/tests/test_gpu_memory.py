"""An engine waits for its share of a GPU, and does not wait for ever."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline.contracts.jobs import CheckSpec, CommitSource
from driftline.contracts.lane import Lane
from driftline.contracts.words import FailureKind
from driftline_worker.bench import Bench
from driftline_worker.ending import CannotRun, Failed
from driftline_worker.gpu_memory import GpuMemory, parse_memory, wait_for_memory, wait_until_back
from driftline_worker.sandbox import Sandbox
from driftline_worker.settings import ChildSettings
from driftline_worker.stop_request import StopRequest

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


def test_what_an_engine_held_is_waited_for_until_it_is_back() -> None:
    answers = [[BUSY, IDLE], [GpuMemory(142_900, 143_771), IDLE]]
    assert wait_until_back([IDLE, IDLE], lambda: answers.pop(0), patience_seconds=30) == 0
    assert answers == []
    assert wait_until_back([IDLE], lambda: [BUSY], patience_seconds=0) == IDLE.free - BUSY.free - 512
    assert wait_until_back([], lambda: [BUSY], patience_seconds=30) == 0  # nvidia-smi told nothing before
    assert wait_until_back([BUSY], lambda: [IDLE], patience_seconds=30) == 0


def test_a_job_on_a_gpu_ends_when_its_memory_is_back(
    check_spec: CheckSpec, source: CommitSource, children: Callable[[str], Path], tmp_path: Path, usual_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch, make_sink: Callable[[], Any],
) -> None:  # fmt: skip
    """A driver that needs three looks to give back what a killed child held."""
    smi, count = tmp_path / "bin" / "nvidia-smi", tmp_path / "looks"
    smi.parent.mkdir()
    smi.write_text(
        f"#!/bin/sh\necho x >> {count}\nn=$(wc -l < {count})\n"
        'if [ "$n" -eq 1 ] || [ "$n" -ge 4 ]; then echo "80000, 81000"; else echo "900, 81000"; fi\n'
    )
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{smi.parent}:{os.environ['PATH']}")
    settings = ChildSettings(data_dir=tmp_path / "data", gpu_type="H100", allow_local_repositories=True)
    bench = Bench(settings, usual_sandbox, children=children("hello(); os.kill(os.getpid(), 9)"))
    ending = bench.run(check_spec.model_copy(update={"source": source}), make_sink(), StopRequest())
    assert isinstance(ending, Failed)
    assert ending.reason == "child_died"
    assert len(count.read_text().split()) == 4


def test_a_child_sees_its_worker_s_gpu_alone(
    check_spec: CheckSpec, source: CommitSource, children: Callable[[str], Path], tmp_path: Path, usual_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch, make_sink: Callable[[], Any],
) -> None:  # fmt: skip
    smi, asked = tmp_path / "bin" / "nvidia-smi", tmp_path / "asked"
    smi.parent.mkdir()
    smi.write_text(f'#!/bin/sh\necho "$@" >> {asked}\necho "80000, 81000"\n')
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{smi.parent}:{os.environ['PATH']}")
    settings = ChildSettings(data_dir=tmp_path / "data", gpu_type="H100", gpu=3, allow_local_repositories=True)
    says = "hello(); names = 'CUDA_DEVICE_ORDER', 'CUDA_VISIBLE_DEVICES'; "
    says += "told = ' '.join(str(os.environ.get(name)) for name in names); "
    says += "send('failure', kind='permanent', reason='told', message=told)"
    bench = Bench(settings, usual_sandbox, children=children(says))
    ending = bench.run(check_spec.model_copy(update={"source": source}), make_sink(), StopRequest())
    assert isinstance(ending, Failed)
    assert ending.message.partition("\n")[0] == "PCI_BUS_ID 3"
    assert set(asked.read_text().splitlines()) == {
        "--query-gpu=memory.free,memory.total --format=csv,noheader,nounits --id=3"
    }
