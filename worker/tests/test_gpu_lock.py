"""Two workers never serve one GPU of a host, and a worker that died holds none."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from driftline_worker.gpu_lock import GpuHeld, gpus_held
from driftline_worker.settings import WorkerSettings

SMI = """#!/bin/sh
case "$*" in
*--id=0*) echo GPU-aaaa;;
*--id=1*) echo GPU-bbbb;;
*--id=*) echo "No devices were found"; exit 6;;
*) echo GPU-aaaa; echo GPU-bbbb;;
esac
"""
Worker = Callable[..., WorkerSettings]


@pytest.fixture(autouse=True)
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi of a machine with two."""
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(SMI)
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{smi.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DRIFTLINE_WORKER_GPU_LOCK_DIR", str(tmp_path))


@pytest.fixture
def settings(tmp_path: Path) -> Worker:
    def make(*, gpu: int | None, gpu_type: str | None = "H200", name: str = "gpu-1") -> WorkerSettings:
        return WorkerSettings(
            data_dir=tmp_path, service_url="http://127.0.0.1:9", broker_url="redis://127.0.0.1:9/0",
            gpu=gpu, gpu_type=gpu_type, name=name,
        )  # type: ignore[arg-type]  # fmt: skip

    return make


def test_a_second_process_is_refused_until_the_first_is_killed(settings: Worker, tmp_path: Path) -> None:
    first = started(tmp_path, "gpu-1", gpu=0)
    assert serves(first)
    second = started(tmp_path, "gpu-2", gpu=0)
    said = second.communicate(timeout=60)[0]
    assert second.returncode == 2, said
    assert "GPU 0 (GPU-aaaa) is served already, by process" in said
    assert f"process {first.pid} on " in said
    assert "worker gpu-1, which holds" in said
    assert "stop that worker, or let this one serve another GPU (--gpu)" in said
    first.kill()
    first.communicate(timeout=60)
    with gpus_held(settings(gpu=0)):
        pass


def started(folder: Path, name: str, *, gpu: int) -> "subprocess.Popen[str]":
    (folder / "broker").mkdir(exist_ok=True)
    told = {
        "SERVICE_URL": "http://127.0.0.1:9", "BROKER_URL": f"filesystem://{folder / 'broker'}", "GPU": str(gpu),
        "GPU_TYPE": "H200", "NAME": name, "DATA_DIR": str(folder / name), "EVAL_PYTHON": sys.executable,
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "driftline_worker"], cwd=folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**os.environ, **{f"DRIFTLINE_WORKER_{key}": text for key, text in told.items()}},
    )  # fmt: skip


def serves(worker: "subprocess.Popen[str]") -> bool:
    assert worker.stdout is not None
    return any("worker serves" in line for line in worker.stdout)


def test_another_gpu_and_a_cpu_are_free(settings: Worker) -> None:
    with gpus_held(settings(gpu=0)), gpus_held(settings(gpu=1)):
        with gpus_held(settings(gpu=None, gpu_type=None)), gpus_held(settings(gpu=None, gpu_type=None)):
            pass
        with pytest.raises(GpuHeld, match=r"^GPU 1 \(GPU-bbbb\) is served already, by process \d+ on "):
            gpus_held(settings(gpu=1, name="gpu-2")).__enter__()


def test_a_worker_of_all_gpus_holds_each(settings: Worker) -> None:
    with gpus_held(settings(gpu=1)), pytest.raises(GpuHeld, match=r"^GPU GPU-bbbb is served already"):
        gpus_held(settings(gpu=None)).__enter__()
    with gpus_held(settings(gpu=None)), pytest.raises(GpuHeld, match=r"^GPU 0 \(GPU-aaaa\) is served already"):
        gpus_held(settings(gpu=0)).__enter__()
    with gpus_held(settings(gpu=0)):
        pass


def test_without_a_uuid_the_index_is_held(settings: Worker) -> None:
    with gpus_held(settings(gpu=5)), pytest.raises(GpuHeld, match=r"^GPU 5 \(index-5\) is served already"):
        gpus_held(settings(gpu=5)).__enter__()


def test_another_user_may_take_what_is_free(settings: Worker, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with gpus_held(settings(gpu=0)):
            assert (tmp_path / "driftline-GPU-aaaa.lock").stat().st_mode & 0o777 == 0o666
    finally:
        os.umask(before)


@pytest.mark.parametrize("planted", ["link", "folder"])
def test_what_is_no_lock_file_is_refused(settings: Worker, tmp_path: Path, planted: str) -> None:
    path = tmp_path / "driftline-GPU-aaaa.lock"
    if planted == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.mkdir()
    with pytest.raises(GpuHeld, match=r"name a folder that every worker of this host may write to \(DRIFTLINE_WORKER_"):
        gpus_held(settings(gpu=0)).__enter__()
    assert not (tmp_path / "elsewhere").exists()
