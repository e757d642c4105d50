"""`driftline worker`: becomes a worker that serves a queue. What a worker does is the worker package's."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.failure import CommandError

PREFIX = "DRIFTLINE_WORKER_"
SMI_SECONDS = 20

DataDirectory = Annotated[
    Path | None, typer.Option(help="Mirrors and scratch; default the variable, else ./.driftline-worker.")
]


def worker(
    service: Annotated[
        str | None, typer.Option(help="Where the service answers, e.g. https://drift.example.org.")
    ] = None,
    broker_file: Annotated[
        Path | None, typer.Option(help="File that holds the broker's URL: its password is in no list of processes.")
    ] = None,
    gpu: Annotated[
        int | None, typer.Option(min=0, max=63, help="The GPU it serves, as nvidia-smi counts; unset: a CPU.")
    ] = None,
    gpu_type: Annotated[
        str | None, typer.Option(help="Its queue's name, e.g. H200; default what nvidia-smi says.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What pages call it; default the host, with the GPU.")] = None,
    data_dir: DataDirectory = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=64, help="Jobs at once on a CPU; a GPU does one.")
    ] = None,
) -> None:
    """Serve a queue with this machine, until Ctrl-C: first it ends the jobs it has begun.

    One worker a GPU. Every setting has a variable DRIFTLINE_WORKER_... as well (docs/deployment.md); an option wins.

    Examples:

      driftline worker --service https://drift.example.org --broker-file secrets/broker_url --gpu 0

      driftline worker --service http://10.0.0.1:8642 --broker-file broker_url --concurrency 2
    """
    if gpu is not None and concurrency not in (None, 1):
        raise CommandError(f"--concurrency {concurrency} with --gpu {gpu}: a GPU does one job at a time; leave it out")
    if gpu is not None and gpu_type is None and f"{PREFIX}GPU_TYPE" not in os.environ:
        gpu_type = _type_of(gpu)
    host = platform.node() or "worker"
    chosen = {
        "SERVICE_URL": service, "BROKER_URL_FILE": broker_file, "GPU": gpu, "GPU_TYPE": gpu_type, "DATA_DIR": data_dir,
        "CONCURRENCY": 1 if gpu is not None else concurrency,
        "NAME": name or (None if gpu is None or f"{PREFIX}NAME" in os.environ else f"{host}-gpu{gpu}"),
    }  # fmt: skip
    environment = {f"{PREFIX}DATA_DIR": str(Path.cwd() / ".driftline-worker"), **os.environ}
    environment |= {f"{PREFIX}{key}": str(value) for key, value in chosen.items() if value is not None}
    arguments = [sys.executable, "-P", "-m", "driftline_worker"]
    os.execve(arguments[0], arguments, environment)  # noqa: S606 - an argument list, no shell; signals reach the worker itself


def _type_of(gpu: int) -> str:
    """The GPU's model in a word, as lanes and queues name it: `H200` of `NVIDIA H200`.

    Raises:
        CommandError: if nvidia-smi does not tell it.
    """
    query = ["nvidia-smi", f"--id={gpu}", "--query-gpu=name", "--format=csv,noheader"]
    remedy = "look at nvidia-smi, or name the type by --gpu-type"
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=SMI_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"--gpu {gpu}: nvidia-smi does not answer ({error}); {remedy}") from error
    words = answer.stdout.strip().removeprefix("NVIDIA ").split()
    if answer.returncode or not words:
        raise CommandError(
            f"--gpu {gpu}: nvidia-smi knows no such GPU: {answer.stdout.strip() or answer.stderr.strip()}; {remedy}"
        )
    return words[0]
