"""The kernel check child: `python -P -s check.py --spec FILE --channel-fd N`, in the eval environment, run by path.

Puts the cases of `mamba2_conformance`, which is installed and trusted, to the kernels in the spec's folder, which are
neither. Exit code 0 after `result`, whatever the cases said, 1 after `failure`. No judgement is made here.
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


def check(spec: KernelSpec, channel: Channel) -> None:
    """Send one case line for each case and backend. Raises Refusal when there is nothing to check."""
    if spec.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported, which the next lines do
    from mamba2_conformance import runner

    channel.send("progress", phase="import", done=0, total=1)
    adapter = loaded_kernels(spec)
    backends = [backend for backend in spec.backends if backend in adapter.backends]
    if not backends:
        wanted, offered = ", ".join(spec.backends), ", ".join(adapter.backends) or "none"
        raise Refusal("unsupported", "no_backend", f"none of the backends {wanted} is in this commit; it has {offered}")
    channel.send("check_summary", layout=adapter.layout, era=adapter.era, device=spec.device, backends=backends)
    done, total = 0, len(runner.plan(adapter, backends, spec.device))
    channel.send("progress", phase="check", done=done, total=total)
    for outcome in runner.run_cases(adapter, backends, device=spec.device):
        done += 1
        channel.send("case", **{**asdict(outcome), "message": clipped(outcome.message)})
        channel.send("progress", phase="check", done=done, total=total)


if __name__ == "__main__":
    sys.exit(run_child("check the kernels of one commit", check, sys.argv[1:]))
