"""How a child starts and ends: arguments, spec, hello, and one last line whatever happens between.

Imports the standard library only until kernels are loaded. What a child does between is its own affair.
"""

import argparse
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from driftline_worker.children.kernel_spec import KernelSpec, SpecError
from driftline_worker.children.line_channel import Channel

if TYPE_CHECKING:
    from mamba2_conformance.adapters.protocol import Adapter

ERROR_CHARACTERS = 3000
"""Of a traceback the end is kept: the error's own text."""


class Refusal(Exception):  # noqa: N818 - it is an outcome with a reason code, as everywhere in children
    """Work that cannot be done: `kind` and `reason` are the failure line's."""

    def __init__(self, kind: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason


def run_with_spec(description: str, work: Callable[[Path, Channel], None], arguments: list[str]) -> int:
    """Do a child's work, given its spec's file, and write its first and last line; the exit code."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--spec", type=Path, required=True, help="JSON file: what to do")
    parser.add_argument("--channel-fd", type=int, required=True, help="descriptor of the pipe for JSON lines")
    options = parser.parse_args(arguments)
    channel = Channel(options.channel_fd)
    channel.hello()
    failure = failure_of(lambda: work(options.spec, channel))
    if failure is None:
        channel.finish()
        return 0
    channel.fail(failure.kind, failure.reason, str(failure))
    return 1


def loaded_kernels(spec: KernelSpec) -> "Adapter":
    """The adapter to the kernels in the spec's folder. Raises Refusal with the reason why they cannot be had.

    What is trusted is imported before the folder under test comes first on the import path.
    """
    from mamba2_conformance.adapters.layout import load_layout
    from mamba2_conformance.adapters.protocol import LoadError

    try:
        return load_layout(spec.layout, spec.import_dir)
    except LoadError as error:
        raise Refusal(error.kind, error.reason, str(error)) from error


def failure_of(work: Callable[[], None]) -> Refusal | None:
    """None when the work was done, else why not. The one place where any exception ends."""
    try:
        work()
    except Refusal as refusal:
        return refusal
    except SpecError as error:
        return Refusal("permanent", "bad_spec", str(error))
    except MemoryError as error:
        return Refusal("transient", "out_of_memory", str(error) or "the child ran out of memory")
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        return Refusal("permanent", "child_crashed", crash_message(error))
    return None


def crash_message(error: BaseException) -> str:
    """What went wrong in the first line, which is all that a table shows; then where."""
    where = traceback.format_exc()
    if len(where) > ERROR_CHARACTERS:
        where = "[...]\n" + where[-ERROR_CHARACTERS:].partition("\n")[2]
    return f"{type(error).__name__}: {error}"[:ERROR_CHARACTERS] + f"\n{where}"
