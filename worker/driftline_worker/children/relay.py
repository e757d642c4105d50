"""Work in a process of its own, whose end takes down one piece of it: what it was at is told as failed, the rest goes on.

The process writes on a pipe the lines that a child sends, and before each piece a `begin` line with what is to be sent
if that piece ends it. Standard library only; which pieces there are is not known here.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Final

from driftline_worker.children.kernel_child import Refusal
from driftline_worker.children.line_channel import MAX_LINE_BYTES, Channel, clipped, encoded
from driftline_worker.children.order import Order

MOST_ENDS: Final = 10
"""Pieces that may end their process, each of which costs seconds of imports; after so many the rest is not asked."""

MOST_PROCESSES: Final = 8
"""Each costs the import of torch, and on a GPU a context of half a gigabyte."""

THREADS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

TAIL_BYTES: Final = 4_000
CHUNK_BYTES: Final = 1 << 16

BETWEEN_US: Final[dict[str, dict[str, type]]] = {
    "begin": {"index": int, "line": dict, "told": str}, "result": {},
    "failure": {"kind": str, "reason": str, "message": str}, "progress": {"phase": str, "done": int, "total": int},
}  # fmt: skip
"""The lines that are read here, with what they must have: a part runs code that nobody trusts, on the same pipe."""

LIMITS: Final = frozenset({signal.SIGKILL, signal.SIGXCPU, signal.SIGTERM, signal.SIGINT})
"""Ends that come from outside, from a limit or from a machine out of memory: no piece is blamed for them."""


class PartEnded(Exception):  # noqa: N818 - what it is
    """A process ended by itself before any piece, or was ended from outside."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Part:
    """One process: what it has begun, at which piece it is, how it ended, and what it printed last."""

    begun: dict[str, Any] | None = None
    last: dict[str, Any] | None = None
    again: bool = False
    at: int = -1
    tail: bytes = b""
    code: int = 0
    lines: bytearray = field(default_factory=bytearray)

    def how(self) -> str:
        if self.code >= 0:
            return f"exit code {self.code}"
        try:
            return f"signal {signal.Signals(-self.code).name}"
        except ValueError:
            return f"signal {-self.code}"

    def message(self) -> str:
        printed = self.tail.decode("utf-8", "replace").strip()
        return clipped(f"it ended the process ({self.how()})" + (f"\n{printed}" if printed else ""))


def relay(command: Sequence[str], channel: Channel, processes: int = 1) -> None:
    """Have all pieces done by `command --first N --step PROCESSES`, several such processes at once, and send on their lines.

    Raises:
        Refusal: what a process itself gave as its failure.
    """
    processes = max(1, min(processes, MOST_PROCESSES))
    order = Order(channel)
    with ThreadPoolExecutor(processes) as pool:
        shares = [pool.submit(share, command, order, place, processes) for place in range(processes)]
        for one in wait(shares, return_when=FIRST_EXCEPTION).done:
            if isinstance(ended := one.exception(), PartEnded):
                die_alike(ended.code)  # here, for a signal's handler belongs to the main thread
    order.finish()
    for one in shares:
        one.result()


def share(command: Sequence[str], order: Order, first: int, step: int) -> None:
    """Every `step`-th piece from `first` on, in as many processes one after the other as it takes."""
    begin, ends = first, 0
    while True:
        unasked = ["--unasked"] if ends >= max(1, MOST_ENDS // step) else []
        part = run_part([*command, "--first", str(begin), "--step", str(step), *unasked], order, step)
        if part.last is not None:
            if part.last["type"] == "result":
                return
            raise Refusal(part.last["kind"], part.last["reason"], part.last["message"])
        if part.again and part.at >= begin:
            begin = part.at + step
            continue
        if part.begun is None or part.at < begin or -part.code in LIMITS:
            raise PartEnded(part.code)
        told = part.begun["line"] | {part.begun["told"]: part.message()}
        order.put(part.at, encoded(told), str(told.get("type")))
        begin, ends = part.at + step, ends + 1


def run_part(command: Sequence[str], order: Order, processes: int) -> Part:
    """One process to its end; its lines are sent on, but for those that are between it and us."""
    part = Part()
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [*command, "--channel-fd", str(writing)], pass_fds=(writing,), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=with_threads(processes),
        )  # fmt: skip
    finally:
        os.close(writing)
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    with process, selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ, "lines")
        selector.register(process.stdout, selectors.EVENT_READ, "printed")
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, CHUNK_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.data == "lines":
                    take(data, part, order)
                else:
                    part.tail = (part.tail + data)[-TAIL_BYTES:]
                    os.write(sys.stderr.fileno(), data)  # the worker keeps its own tail, and counts it
    os.close(reading)
    part.code = process.returncode
    return part


def with_threads(processes: int) -> dict[str, str]:
    """The environment, with this child's threads dealt out among so many processes."""
    dealt = {name: str(max(1, int(os.environ[name]) // processes)) for name in THREADS if name in os.environ}
    return {**os.environ, **dealt}


def take(data: bytes, part: Part, order: Order) -> None:
    """Send on the complete lines; what is no line of ours, or has no end, goes on as it came: the worker judges it."""
    *complete, rest = bytes(part.lines + data).split(b"\n")
    for raw in complete:
        line = message_in(raw)
        if line is None or not sent_on(line, raw, part, order):
            order.channel.pass_on(raw + b"\n")
    if len(rest) > MAX_LINE_BYTES:
        order.channel.pass_on(rest)
        rest = b""
    part.lines = bytearray(rest)


def message_in(raw: bytes) -> dict[str, Any] | None:
    """The line's object, or None where a part that is as it should be writes no such thing."""
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(line, dict) or not isinstance(line.get("type"), str):
        return None
    fields = BETWEEN_US.get(line["type"], {})
    return line if all(isinstance(line.get(name), kind) for name, kind in fields.items()) else None


def sent_on(line: dict[str, Any], raw: bytes, part: Part, order: Order) -> bool:
    """False if the line is neither between the part and us nor one that the channel could have written."""
    match line["type"]:
        case "hello":
            pass
        case "begin":
            part.begun, part.at, part.tail = line, line["index"], b""
        case "again":
            part.again = True
        case "result" | "failure":
            part.last = line
        case "progress":
            order.progress(line)
        case _ if len(raw) >= MAX_LINE_BYTES:
            return False
        case kind if part.begun is not None and kind == part.begun["line"].get("type"):
            part.begun = None
            order.put(part.at, raw + b"\n", kind)
        case kind:
            order.channel.pass_on(raw + b"\n", kind)
    return True


def die_alike(code: int) -> None:
    """End as the part ended, so that the worker sees what it would see of a child without parts."""
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)
