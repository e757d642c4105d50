"""The kernel check child: `python -P -s check.py --spec FILE --channel-fd N`, in the eval environment, run by path.

Puts the cases of `mamba2_conformance`, which is installed and trusted, to the kernels in the spec's folder, which are
neither, in a process of its own: a case that ends it is a failed case. Exit code 0 after `result`, whatever the cases
said, 1 after `failure`. No judgement is made here.
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
from driftline_worker.children.kernel_spec import KernelSpec
from driftline_worker.children.line_channel import Channel, clipped
from driftline_worker.children.parts import NOT_ASKED, Place, begin, run_in_parts
from driftline_worker.children.relay import relay


def whole(spec: KernelSpec, channel: Channel, command: Sequence[str]) -> None:
    relay(command, channel, spec.processes)


def check(spec: KernelSpec, channel: Channel, place: Place) -> None:
    """Send one case line for each case and backend. Raises Refusal when there is nothing to check."""
    if spec.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported, which the next lines do
    with heavy_imports():
        from mamba2_conformance import interpreter, runner

    if spec.device == "cpu":
        interpreter.quicken()

    channel.send("progress", phase="import", done=0, total=1)
    adapter = loaded_kernels(spec)
    backends = [backend for backend in spec.backends if backend in adapter.backends]
    if not backends:
        wanted, offered = ", ".join(spec.backends), ", ".join(adapter.backends) or "none"
        raise Refusal("unsupported", "no_backend", f"none of the backends {wanted} is in this commit; it has {offered}")
    if place.first == 0:
        channel.send("check_summary", layout=adapter.layout, era=adapter.era, device=spec.device, backends=backends)
    planned = runner.plan(adapter, backends, spec.device)
    channel.send("progress", phase="check", done=place.first, total=len(planned))
    for index, (case, backend) in list(enumerate(planned))[place.first :: place.step]:
        lost = asdict(runner.without_answer(case, adapter, backend, NOT_ASKED))
        begin(channel, index, {"type": "case", **lost}, told="message")
        outcome = lost if place.unasked else asdict(runner.outcome_of(case, adapter, backend, device=spec.device))
        channel.send("case", **{**outcome, "message": clipped(str(outcome["message"]))})
        channel.send("progress", phase="check", done=index + 1, total=len(planned))
        if not outcome["passed"] and not place.unasked and not runner.device_works(spec.device):
            channel.send("again")  # an illegal access spoils all that this process does on its GPU from now on
            os._exit(1)


if __name__ == "__main__":
    sys.exit(run_in_parts("check the kernels of one commit", whole, check, sys.argv[1:]))
