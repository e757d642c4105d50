"""The writing end of a child's pipe: one JSON object a line on a file descriptor, standard library only.

Children are run by path in an environment of their own, where `driftline` does not exist, so this file imports nothing
of it; `driftline.contracts.channel` says which lines there are, and the worker validates each of them. Nothing here
knows what a check, a build or an evaluation is.
"""

import json
import math
import os
import threading
from typing import Final

PROTOCOL: Final = 1

MAX_LINE_BYTES: Final = 1 << 20
"""The worker takes a longer line for a flood (driftline.contracts.channel); refused here, it can be named."""

MESSAGE_CHARACTERS: Final = 4000
"""Longest message the worker keeps; what is longer is cut here and marked."""

COUNTED: Final = frozenset({"sample", "teacher_forced", "case", "kernel_build", "kernel_test", "tolerance"})
"""The lines that are results. `result` tells how many there were, so that a lost line is noticed."""


class LineError(ValueError):
    """A line that must not be written: too long, or after the last one."""


class Channel:
    """Writes lines to the pipe `fd`. Safe to share between threads; a line is never torn by another."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._lines = 0
        self._ended = False

    @property
    def lines(self) -> int:
        """How many lines that are results were written."""
        return self._lines

    def hello(self) -> None:
        """The first line of every child."""
        self.send("hello", protocol=PROTOCOL)

    def send(self, line_type: str, /, **fields: object) -> None:
        """Write one line. NaN and infinities become null; lone surrogates and NUL become U+FFFD.

        Raises LineError for a line over MAX_LINE_BYTES or after the last line, TypeError for what JSON cannot hold.
        """
        line = encoded({"type": line_type, **fields})
        with self._lock:
            self._write(line)
            self._lines += line_type in COUNTED

    def pass_on(self, raw: bytes, line_type: str = "") -> None:
        """Write what another process wrote, as it came. `line_type` is its type if it is a whole line of the contract."""
        with self._lock:
            self._write(raw)
            self._lines += line_type in COUNTED

    def fail(self, kind: str, reason: str, message: str) -> None:
        """The last line of a child that could not do its work: kind is transient, permanent or unsupported."""
        line = encoded({"type": "failure", "kind": kind, "reason": reason, "message": clipped(message)})
        with self._lock:
            self._write(line)
            self._ended = True

    def finish(self) -> None:
        """The last line of a child that did its work."""
        with self._lock:
            self._write(encoded({"type": "result", "lines": self._lines}))
            self._ended = True

    def _write(self, line: bytes) -> None:
        if self._ended:
            raise LineError(
                "the last line of this channel was already written; send everything before fail() or finish()"
            )
        left = memoryview(line)
        while left:  # a pipe takes a line longer than its buffer in pieces
            left = left[os.write(self._fd, left) :]


def encoded(line: dict[str, object]) -> bytes:
    """One line as UTF-8 JSON with its newline. Raises LineError if it is longer than MAX_LINE_BYTES."""
    data = json.dumps(_portable(line), allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
    if len(data) > MAX_LINE_BYTES:
        raise LineError(
            f"a {line['type']} line of {len(data)} bytes is over the {MAX_LINE_BYTES} a line may have; send less text"
        )
    return data


def clipped(message: str, characters: int = MESSAGE_CHARACTERS) -> str:
    """The message cut to the length a worker keeps; its end is kept too, for a compiler says there what was wrong."""
    if len(message) <= characters:
        return message
    gap = "\n[...]\n"
    head = (characters - len(gap)) // 2
    return message[:head] + gap + message[len(message) - (characters - len(gap) - head) :]


def _portable(value: object) -> object:
    """The value in what JSON and PostgreSQL can both hold."""
    match value:
        case bool() | int() | None:
            return value
        case float():
            return float(value) if math.isfinite(value) else None
        case str():
            return _well_formed(value)
        case dict():
            return {_well_formed(str(key)): _portable(item) for key, item in value.items()}
        case list() | tuple():
            return [_portable(item) for item in value]
        case _:
            raise TypeError(f"a line cannot hold a {type(value).__name__}; give text, numbers, lists or dicts")


def _well_formed(text: str) -> str:
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")
