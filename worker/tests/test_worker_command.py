"""`driftline worker`: the command line becomes a worker, with a GPU of its own."""

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CLI = Path(sys.executable).with_name("driftline")


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with one H200."""
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(
        '#!/bin/sh\ncase "$*" in *--id=0*--query-gpu=name*) echo "NVIDIA H200";; *query-gpu=uuid*) echo GPU-1;;\n'
        '*) echo "No devices were found"; exit 6;; esac\n'
    )
    smi.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRIFTLINE_")}
    own = {"PATH": f"{smi.parent}:{os.environ['PATH']}", "DRIFTLINE_WORKER_GPU_LOCK_DIR": str(tmp_path)}
    return kept | own | {"COLUMNS": "200"}


def test_it_serves_the_queue_of_its_gpu_until_it_is_told_to_stop(tmp_path: Path, machine: dict[str, str]) -> None:
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker_url").write_text(f"filesystem://{tmp_path / 'broker'}\n")
    command = [str(CLI), "worker", "--service", "http://127.0.0.1:9", "--broker-file", "broker_url", "--gpu", "0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=machine, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said = next((line for line in process.stdout if "worker serves" in line), "")
    wait_until_stoppable(process.pid)
    process.send_signal(signal.SIGTERM)
    rest = process.communicate(timeout=60)[0]
    assert "gpu-H200" in said, rest
    assert f"{platform.node()}-gpu0" in said
    assert process.returncode == 0, rest


def wait_until_stoppable(pid: int) -> None:
    """Until Celery's own handler for SIGTERM is there; before, the signal ends the process at once, and no job is begun."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1]
        if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.05)
    raise AssertionError("the worker never caught SIGTERM")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--gpu", "0", "--concurrency", "2"),
            "--concurrency 2 with --gpu 0: a GPU does one job at a time; leave it out",
        ),
        (("--gpu", "7"), "--gpu 7: nvidia-smi knows no such GPU: No devices were found; look at nvidia-smi, or name"),
        (("--service", "http://127.0.0.1:9"), "DRIFTLINE_WORKER_BROKER_URL: "),
    ],
)
def test_what_it_cannot_serve_is_refused_by_name(
    tmp_path: Path, machine: dict[str, str], arguments: tuple[str, ...], message: str
) -> None:
    answer = subprocess.run(
        [str(CLI), "worker", *arguments],
        cwd=tmp_path,
        env=machine,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode != 0
    assert message in answer.stderr, answer.stderr
