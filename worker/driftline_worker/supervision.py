"""Watches one child from its first line to its last: reads, judges, passes on, and ends it when it breaks a rule.

One thread, no queue: the loop reads two pipes and looks at clocks, memory, disk and stop requests between reads.
"""

import os
import selectors
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from driftline.contracts.channel import Failure, Result
from driftline.contracts.words import FailureKind
from driftline.contracts.worker_api import ReportedLine

from driftline_worker.channel import Expected, Judge
from driftline_worker.children.vllm_engine.log_errors import classify
from driftline_worker.ending import Abandoned, Ending, Failed, Reason, Succeeded, childs_word, clipped
from driftline_worker.limits import Limits
from driftline_worker.process_tree import usage_below
from driftline_worker.raw_lines import Flooded, RawLines
from driftline_worker.running_child import RunningChild
from driftline_worker.scratch import Scratch
from driftline_worker.stop_request import StopRequest

TICK_SECONDS = 0.2
"""Longest time until a stop request, a broken limit or an end is noticed."""

DISK_SECONDS = 2.0
"""Walking a scratch folder of some thousand files takes milliseconds."""

AFTERLIFE_SECONDS = 10.0
"""A child that has sent its last line may tidy up for so long."""

GONE_SECONDS = 2.0
"""A channel closes a moment before its process is gone."""

CHUNK_BYTES = 1 << 16

MOST_OUTPUT_BYTES = 256 << 20
"""On stdout and stderr together. A verbose evaluation prints some megabytes; reading without end takes a core."""

FILE_TOO_LARGE = ("File too large", "signal SIGXFSZ")
TRANSIENT, PERMANENT = FailureKind.TRANSIENT, FailureKind.PERMANENT


class Sink(Protocol):
    """Where accepted lines go."""

    def put(self, line: ReportedLine, size: int) -> None: ...

    def full(self) -> bool:
        """True while no more should be read: the child then waits on its pipe."""


class Supervision:
    """Used once, by one thread."""

    def __init__(
        self, child: RunningChild, scratch: Scratch, *, expected: Expected, limits: Limits, stop: StopRequest
    ) -> None:
        self._child = child
        self._scratch = scratch
        self._limits = limits
        self._stop = stop
        stop.tell_child(scratch.enough_file)
        self._judge = Judge(expected)
        self._lines = RawLines(total_bytes=expected.total_bytes)
        self._begun = self._heard = self._checked = self._looked = time.monotonic()
        self._last_at: float | None = None
        self._flood = ""

    def run(self, sink: Sink) -> Ending:
        """Until the child is gone, with all it started. Whatever happens, nothing of it is left running."""
        try:
            ending = self._watch(sink)
            if isinstance(ending, Failed):  # of a full disk children die in every way but by its name
                ending = next(self._disk_overrun(), ending)
        finally:
            self._child.end()
        if isinstance(ending, Abandoned):
            return ending
        return replace(ending, dropped=self._judge.dropped, seconds=time.monotonic() - self._begun)

    def _watch(self, sink: Sink) -> Ending:
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.channel, selectors.EVENT_READ)
            selector.register(self._child.output, selectors.EVENT_READ)
            while True:
                open_channel = self._read(selector, sink)
                ending = self._broken_rule() or self._stop_asked()
                if ending is not None:
                    return ending
                if not open_channel or self._outlived():
                    return self._end_of_talk()

    def _read(self, selector: selectors.BaseSelector, sink: Sink) -> bool:
        """Read what there is; whether the channel is still open."""
        paused = sink.full()
        if paused:
            self._heard = time.monotonic()  # it is we who do not listen
            self._stop.wait(TICK_SECONDS)
        for key, _ in selector.select(0 if paused else TICK_SECONDS):
            if key.fd == self._child.channel and paused:
                continue
            data = os.read(key.fd, CHUNK_BYTES)
            if key.fd == self._child.output:
                self._child.tail.add(data)
                if not data:
                    selector.unregister(key.fd)
            elif not data:
                return False
            else:
                self._take(data, sink)
        return True

    def _take(self, data: bytes, sink: Sink) -> None:
        try:
            lines = self._lines.feed(data)
        except Flooded as error:
            self._flood = str(error)
            return
        for raw in lines:
            accepted = self._judge.accepted
            line = self._judge.take(raw)
            if line is not None:
                sink.put(line, len(raw))
            if self._judge.accepted > accepted:
                self._heard = time.monotonic()
        if self._judge.last is not None and self._last_at is None:
            self._last_at = time.monotonic()

    def _broken_rule(self) -> Failed | None:
        """The first rule that the child breaks now."""
        judge = self._judge
        if self._child.tail.seen > MOST_OUTPUT_BYTES:
            message = f"the child printed more than {MOST_OUTPUT_BYTES >> 20} MB; it was ended"
            return self._told(PERMANENT, "flooded_output", message)
        if self._flood or judge.too_many:
            said = self._flood or f"more than {judge.accepted - 1} lines"
            return _failed(PERMANENT, "flooded_channel", f"the child sent {said}; it was ended")
        if judge.garbage:
            return _failed(
                PERMANENT, "garbage_output", f"{judge.dropped} lines were not believed, first {judge.first_fault}"
            )
        now = time.monotonic()
        if self._last_at is not None or now - self._checked < TICK_SECONDS:
            return None
        self._checked = now
        return next(self._overruns(now), None)

    def _overruns(self, now: float) -> Iterator[Failed]:
        limits = self._limits
        if now - self._begun > limits.total_seconds:
            yield self._told(
                TRANSIENT, "child_too_slow", f"not done after {limits.total_seconds:g} s; {self._judge.whereabouts}"
            )
        if not self._judge.greeted and now - self._begun > limits.start_seconds:
            yield self._told(TRANSIENT, "child_silent", f"no first line within {limits.start_seconds:g} s of its start")
        patience = limits.silence_in(self._judge.phase)
        if self._judge.greeted and now - self._heard > patience:
            yield self._told(TRANSIENT, "child_silent", f"no line for {patience:g} s; {self._judge.whereabouts}")
        usage = usage_below(self._child.pid)
        if usage.processes > limits.processes:
            yield self._told(
                PERMANENT, "too_many_processes", f"the child started more than {limits.processes} processes"
            )
        if usage.memory_bytes > limits.memory_bytes and (used := usage.exact_bytes()) > limits.memory_bytes:
            message = f"the child used {used >> 20} MB of memory, {limits.memory_bytes >> 20} MB are allowed"
            yield self._told(TRANSIENT, "out_of_memory", message)
        if now - self._looked > DISK_SECONDS:
            self._looked = now
            yield from self._disk_overrun()

    def _disk_overrun(self) -> Iterator[Failed]:
        limits, used, free = self._limits, self._scratch.used_bytes(), self._scratch.free_bytes()
        if used > limits.scratch_bytes:
            allowed = limits.scratch_bytes >> 20
            yield self._told(TRANSIENT, "scratch_full", f"the child wrote more than the {allowed} MB it may")
        if free < limits.smallest_free_bytes:
            if used > limits.smallest_free_bytes:  # the disk is fine without it
                message = f"the child wrote {used >> 20} MB and left {free >> 20} MB on the worker's disk"
                yield self._told(TRANSIENT, "scratch_full", message)
            yield self._told(TRANSIENT, "disk_full", limits.too_little_left(free))

    def _stop_asked(self) -> Ending | None:
        match self._stop.why:
            case None:
                return None
            case "worker_stopped":
                return _failed(TRANSIENT, "worker_stopped", "the worker was stopped; another attempt follows")
            case "report_refused":
                return _failed(PERMANENT, "report_refused", self._stop.message)
            case why:
                return Abandoned(self._stop.message or why)

    def _outlived(self) -> bool:
        """Is there nothing more to wait for, though somebody still holds the channel open?"""
        if self._last_at is not None and time.monotonic() - self._last_at > AFTERLIFE_SECONDS:
            return True
        return self._child.exited() and not _readable(self._child.channel)

    def _end_of_talk(self) -> Ending:
        last = self._judge.last
        if isinstance(last, Failure):
            return Failed(last.kind, childs_word(last.reason), clipped(last.message + self._file_limit(last.message)))
        if not isinstance(last, Result):
            return self._death()
        if last.lines != self._judge.results:
            fault = self._judge.first_fault or "none was seen"
            message = f"the child sent {last.lines} results and {self._judge.results} arrived; first fault: {fault}"
            return _failed(TRANSIENT, "lines_lost", message)
        return Succeeded()

    def _death(self) -> Failed:
        """It ended without a last line."""
        closed_only = not self._child.exits_within(GONE_SECONDS)
        self._child.end()
        how = "it closed its channel" if closed_only else str(self._child.exit())
        told = f"the child ended without a last line ({how})"
        if how == "signal SIGXCPU":
            return self._told(
                PERMANENT, "cpu_limit", f"{told}: it used more than {self._limits.cpu_seconds} s of CPU time"
            )
        if (known := classify(str(self._child.tail))) is not None:  # an engine's error that its child did not outlive
            message = f"{told}: {known.line}\n{self._child.tail}"
            return Failed(FailureKind(known.kind), childs_word(known.reason), clipped(message))
        if how == "signal SIGKILL":
            told += "; perhaps the machine ran out of memory"
        return self._told(TRANSIENT, "child_died", told + self._file_limit(f"{how}\n{self._child.tail}"))

    def _file_limit(self, said: str) -> str:
        """The limit behind an error that does not name it."""
        if not any(sign in said for sign in FILE_TOO_LARGE):
            return ""
        return f"; a file that a child writes may have {self._limits.file_bytes >> 20} MB"

    def _told(self, kind: FailureKind, reason: Reason, message: str) -> Failed:
        """A failure with what the child printed last."""
        tail = str(self._child.tail)
        return _failed(kind, reason, f"{message}\n{tail}" if tail else message)


def _failed(kind: FailureKind, reason: Reason, message: str) -> Failed:
    return Failed(kind, reason, clipped(message))


def _readable(descriptor: int) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))
