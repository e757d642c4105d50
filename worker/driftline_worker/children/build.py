"""The build child: `python -P -s build.py --spec FILE --channel-fd N`, in the eval environment, run by path.

Compiles every Triton kernel of a commit ahead of time, under each release of Triton that is named, for GPUs that need
not be there. A kernel that does not compile is a line that says so, not a failure of the build; one that ends the
compiler's process is no more. Exit code 0 after `result`, 1 after `failure`.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

if (
    not __package__
):  # Run by path: give the package its name without putting a folder of the project on the import path.
    package = ModuleType("driftline_worker")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["driftline_worker"] = package

from driftline_worker.children.heavy_imports import heavy_imports
from driftline_worker.children.kernel_child import Refusal, loaded_kernels
from driftline_worker.children.kernel_spec import KernelSpec, Triton
from driftline_worker.children.line_channel import Channel, clipped
from driftline_worker.children.parts import NOT_ASKED, Place, begin, run_in_parts
from driftline_worker.children.relay import relay

WRONG_TRITON = "wrong_triton"


def whole(spec: KernelSpec, channel: Channel, command: Sequence[str]) -> None:
    """Build under one Triton after the other, and tell of each whether it was there."""
    told = {f"Triton {triton.name}": under(triton, spec, channel, command) for triton in spec.tritons}
    channel.send("environment", must_match={}, recorded=told)


def under(triton: Triton, spec: KernelSpec, channel: Channel, command: Sequence[str]) -> str:
    """`compiled`, or why this Triton was not asked. Kernels that do not even import under it are one line an arch."""
    if triton.folder is not None and not triton.folder.is_dir():
        return f"not asked: {triton.version} is not on this worker; `make triton-env` puts it there"
    try:
        relay([*command, "--name", triton.name], channel, spec.processes)
    except Refusal as refusal:
        if refusal.reason == WRONG_TRITON:
            return f"not asked: {refusal}"
        if triton == spec.tritons[0]:
            raise
        for architecture in triton.architectures:
            channel.send(
                "kernel_build", kernel="before any kernel", config="the import of the kernels",
                arch=f"sm_{architecture}", triton=triton.version, compiled=False, error=clipped(str(refusal)),
            )  # fmt: skip
    return "compiled"


def build(spec: KernelSpec, channel: Channel, place: Place) -> None:
    """Send one line for each kernel, configuration and architecture. Raises Refusal if nothing can be compiled."""
    os.environ.pop("TRITON_INTERPRET", None)  # it would put the interpreter in the compiler's place
    number, triton = next((n, one) for n, one in enumerate(spec.tritons) if one.name == place.name)
    with heavy_imports():
        version = imported_version(triton)
        from mamba2_conformance.compilation import compiler, scenario

    channel.send("progress", phase="import", done=0, total=1)
    adapter = loaded_kernels(spec)
    if scenario.BACKEND not in adapter.backends:
        raise Refusal("unsupported", "no_triton_kernels", "this commit has no Triton backend, so nothing is compiled")
    channel.send("progress", phase="plan", done=0, total=1)  # calls the commit's functions, which may hang as well
    planned_launches = compiler.plan(adapter)
    pieces = compiler.pieces(planned_launches, triton.architectures)
    places = [len(planned_launches) * len(one.architectures) for one in spec.tritons]
    before, total = sum(places[:number]), sum(places)
    channel.send("progress", phase="compile", done=before + place.first, total=total)
    compile_one = compiler.compiling()
    for index, (planned, architecture) in list(enumerate(pieces))[place.first :: place.step]:
        lost = {"triton": version, **asdict(compiler.refused(planned, architecture, NOT_ASKED))}
        begin(channel, index, {"type": "kernel_build", **lost}, told="error")
        found = lost if place.unasked else {"triton": version, **asdict(compile_one(planned, architecture))}
        channel.send("kernel_build", **{**found, "error": clipped(str(found["error"]))})
        channel.send("progress", phase="compile", done=before + index + 1, total=total)


def imported_version(triton: Triton) -> str:
    """The version of Triton that is imported from here on. Raises Refusal if it is not the one that was named."""
    if triton.folder is not None:
        sys.path.insert(0, str(triton.folder))
    import triton as imported

    version = str(imported.__version__)
    if triton.version not in ("", version):
        place = triton.folder or "the evaluation environment"
        message = f"{place} holds Triton {version}, not {triton.version}; `make triton-env` puts it there"
        raise Refusal("permanent", WRONG_TRITON, message)
    return version


if __name__ == "__main__":
    sys.exit(run_in_parts("compile the kernels of one commit", whole, build, sys.argv[1:]))
