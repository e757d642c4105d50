"""The build child: `python -P -s build.py --spec FILE --channel-fd N`, in the eval environment, run by path.

Compiles every Triton kernel of a commit ahead of time for GPUs that need not be there. A kernel that does not compile
is a line that says so, not a failure of the build. Exit code 0 after `result`, 1 after `failure`.
"""

import os
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

if (
    not __package__
):  # Run by path: give the package its name without putting a folder of the project on the import path.
    package = ModuleType("driftline_worker")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["driftline_worker"] = package

from driftline_worker.children.kernel_child import Refusal, loaded_kernels, run_child
from driftline_worker.children.kernel_spec import KernelSpec
from driftline_worker.children.line_channel import Channel, clipped


def build(spec: KernelSpec, channel: Channel) -> None:
    """Send one line for each kernel, configuration and architecture. Raises Refusal if nothing can be compiled."""
    os.environ.pop("TRITON_INTERPRET", None)  # it would put the interpreter in the compiler's place
    from mamba2_conformance.compilation import compiler, scenario

    channel.send("progress", phase="import", done=0, total=1)
    adapter = loaded_kernels(spec)
    if scenario.BACKEND not in adapter.backends:
        raise Refusal("unsupported", "no_triton_kernels", "this commit has no Triton backend, so nothing is compiled")
    channel.send("progress", phase="plan", done=0, total=1)  # calls the commit's functions, which may hang as well
    planned = compiler.plan(adapter)
    done, total = 0, len(planned) * len(spec.architectures)
    channel.send("progress", phase="compile", done=done, total=total)
    for report in compiler.compiled(planned, spec.architectures):
        done += 1
        channel.send("kernel_build", **{**asdict(report), "error": clipped(report.error)})
        channel.send("progress", phase="compile", done=done, total=total)


if __name__ == "__main__":
    sys.exit(run_child("compile the kernels of one commit", build, sys.argv[1:]))
