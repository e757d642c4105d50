"""Bytes from a pipe become lines, with a cap on each and on all. What a line means is not known here."""

from driftline.contracts.channel import MAX_LINE_BYTES


class Flooded(Exception):  # noqa: N818 - what it is
    """More bytes than any honest child sends."""


class RawLines:
    def __init__(self, *, total_bytes: int) -> None:
        self._total = total_bytes
        self._read = 0
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without their newlines.

        Raises:
            Flooded: for a line over MAX_LINE_BYTES, or too many bytes in all.
        """
        self._read += len(data)
        if self._read > self._total:
            raise Flooded(f"more than {self._total} bytes on its channel")
        *complete, rest = data.split(b"\n")
        lines = []
        for piece in complete:
            lines.append(bytes(self._rest + piece))
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > MAX_LINE_BYTES or any(len(line) > MAX_LINE_BYTES for line in lines):
            raise Flooded(f"a line of more than {MAX_LINE_BYTES} bytes on its channel")
        return lines

    @property
    def torn(self) -> bool:
        """Did the child end in the middle of a line?"""
        return bool(self._rest)
