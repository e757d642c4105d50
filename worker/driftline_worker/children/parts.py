"""How a child that works in parts starts: run plainly it starts its parts and passes on what they say; with `--first`
it is one of them, and begins at that piece."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from driftline_worker.children.kernel_child import run_with_spec
from driftline_worker.children.kernel_spec import KernelSpec, read_spec
from driftline_worker.children.line_channel import Channel

NOT_ASKED = "not asked: too many before it ended their process"


@dataclass(frozen=True)
class Place:
    """Which pieces a part does: each `step`-th from `first` on. unasked: tell them as failed without trying. name: which
    of several kinds of part it is."""

    first: int
    step: int
    unasked: bool
    name: str = ""


Whole = Callable[[KernelSpec, Channel, Sequence[str]], None]
Work = Callable[[KernelSpec, Channel, Place], None]


def run_in_parts(description: str, whole: Whole, work: Work, arguments: list[str]) -> int:
    """The exit code. `whole` starts the parts by the command it is given; `work` is what a part does."""
    parser = argparse.ArgumentParser(description=description, add_help=False)
    parser.add_argument("--first", type=int)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--unasked", action="store_true")
    parser.add_argument("--name", default="")
    options, rest = parser.parse_known_args(arguments)
    if options.first is None:
        command = [sys.executable, "-P", "-s", sys.argv[0]]
        return run_with_spec(
            description,
            lambda spec_file, channel: whole(read_spec(spec_file), channel, [*command, "--spec", str(spec_file)]),
            rest,
        )
    place = Place(options.first, options.step, options.unasked, options.name)
    return run_with_spec(description, lambda spec_file, channel: work(read_spec(spec_file), channel, place), rest)


def begin(channel: Channel, index: int, line: Mapping[str, object], *, told: str) -> None:
    """Say what is to be sent if the next piece ends this process; `told` is the field that then says how."""
    channel.send("begin", index=index, line=dict(line), told=told)
