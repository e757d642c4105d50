"""One pytest process: what it tells of its tests, and how it is ended when it hangs or floods."""

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

COLLECT_SECONDS: Final = 600.0
"""Longest time before the first test and after the last: conftest files import engines."""

FLOOD_BYTES: Final = 32 << 20
"""Printed by one test, or told on the pipe in one line: more is an endless loop."""

HEARTBEAT_SECONDS: Final = 20.0
TAIL_BYTES: Final = 3_000
CHUNK_BYTES: Final = 1 << 16


@dataclass
class Session:
    """What came of one process. `current` is the test that it was at; `cut` why it was ended by us."""

    collected: list[str] = field(default_factory=list)
    current: str | None = None
    since: float = field(default_factory=time.monotonic)
    finished: int = 0
    status: int | None = None
    cut: str | None = None
    code: int = 0
    tail: bytes = b""
    printed: int = 0
    rest: bytes = b""

    def said(self) -> str:
        return self.tail.decode("utf-8", "replace").strip()

    def how(self) -> str:
        if self.code >= 0:
            return f"exit code {self.code}"
        with suppress(ValueError):
            return f"signal {signal.Signals(-self.code).name}"
        return f"signal {-self.code}"


Tell = Callable[[dict[str, Any]], None]


def run_session(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, *, seconds: float, tell: Tell,
    beat: Callable[[], None],
) -> Session:  # fmt: skip
    """Run pytest to its end, or to the end of what it may take. `tell` gets each finished test and collection error."""
    session = Session()
    reading, writing = os.pipe()
    told = {**environment, "DRIFTLINE_TEST_PIPE": str(writing)}
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=told, pass_fds=(writing,), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(reading, selectors.EVENT_READ, "told")
            selector.register(process.stdout, selectors.EVENT_READ, "printed")
            _watch(selector, process, session, seconds, tell, beat)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        session.code = process.wait()
        process.stdout.close()
        os.close(reading)
    return session


def _watch(
    selector: selectors.BaseSelector, process: "subprocess.Popen[bytes]", session: Session, seconds: float, tell: Tell,
    beat: Callable[[], None],
) -> None:  # fmt: skip
    beaten = time.monotonic()
    while selector.get_map():
        ready = selector.select(0.5)
        for key, _ in ready:
            data = os.read(key.fd, CHUNK_BYTES)
            if not data:
                selector.unregister(key.fileobj)
            elif key.data == "printed":
                session.tail, session.printed = (session.tail + data)[-TAIL_BYTES:], session.printed + len(data)
            else:
                _take(session, data, tell)
        now = time.monotonic()
        if now - beaten > HEARTBEAT_SECONDS:
            beaten = now
            beat()
        if session.printed > FLOOD_BYTES or len(session.rest) > FLOOD_BYTES:
            session.cut = "flooded"
        elif session.status is not None:
            if now - session.since > COLLECT_SECONDS:
                return  # all was told: how long it takes to go is its own affair
        elif now - session.since > (COLLECT_SECONDS if session.current is None else seconds):
            session.cut = "timed_out"
        gone = process.poll() is not None and not ready  # what it left running may hold the pipes for ever
        if session.cut is not None or gone:
            return


def _take(session: Session, data: bytes, tell: Tell) -> None:
    *complete, session.rest = (session.rest + data).split(b"\n")
    for raw in complete:
        try:
            line = json.loads(raw)
            _heard(session, line, tell)
        except (ValueError, KeyError, TypeError):
            session.cut = "flooded"  # a test writes on our pipe: nothing after it can be believed


def _heard(session: Session, line: dict[str, Any], tell: Tell) -> None:
    match line["event"]:
        case "collected":
            session.collected.append(str(line["node"]))
        case "start":
            session.current, session.since, session.printed = str(line["node"]), time.monotonic(), 0
        case "finish":
            session.current, session.since, session.finished = None, time.monotonic(), session.finished + 1
            tell(line)
        case "collect_error":
            tell({**line, "outcome": "error", "seconds": 0.0})
        case "end":
            session.status, session.since = int(line["status"]), time.monotonic()
