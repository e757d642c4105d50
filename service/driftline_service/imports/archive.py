"""An uploaded tar archive becomes a folder of lm-eval's files, or is refused. Nothing of a member's path is believed.

Members are read one after the other and written under names of our own making; links, devices and folders have no place
in such an archive. The caps hold for what is unpacked, so that a small archive cannot become a full disk.
"""

import gzip
import re
import tarfile
import zlib
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import IO, Self

from driftline_service.intake.refusal import Refusal

FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,250}\.(json|jsonl|jsonl\.gz)")
"""What lm-eval calls its files: results_<time>.json, samples_<task>_<time>.jsonl, or <stem>_<time>.json."""

MOST_FILES = 200
"""One results file and one samples file a task; lm-eval's largest groups have about a hundred tasks."""

CHUNK_BYTES = 1 << 20

LONG_HEADERS = frozenset({
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
})  # fmt: skip
LARGEST_HEADER = 64 << 10
"""Bytes; a path and its times take some hundred."""


async def receive(chunks: AsyncIterator[bytes], upload: IO[bytes], *, limit: int) -> None:
    """Write the body to `upload`, never holding more than a chunk of it.

    Raises:
        Refusal: body_too_large or empty_archive.
    """
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            detail = f"the archive is larger than {limit} bytes; compress it, or send fewer tasks at once"
            raise Refusal("body_too_large", detail, status=413)
        upload.write(chunk)
    if size == 0:
        raise Refusal("empty_archive", "the body is empty; send a tar archive of results_*.json and samples_*.jsonl")
    upload.seek(0)


def unpack(upload: IO[bytes], folder: Path, *, limit: int) -> None:
    """Write each member into `folder`; what is gzipped inside the archive is unpacked too.

    Raises:
        Refusal: bad_archive, unexpected_member, too_many_files or archive_too_large.
    """
    left = limit
    try:
        with tarfile.open(fileobj=upload, mode="r|*", tarinfo=_Member) as archive:
            for count, member in enumerate(archive, start=1):
                if count > MOST_FILES:
                    raise Refusal("too_many_files", f"the archive holds more than {MOST_FILES} files")
                left -= _write(archive, member, folder, left)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        detail = f"the body is no whole tar archive ({error}); `tar c results_*.json samples_*.jsonl` makes one"
        raise Refusal("bad_archive", detail) from error


class _Member(tarfile.TarInfo):
    """A member whose header is small: tarfile reads the long ones, of paths and remarks, into memory whole."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type in LONG_HEADERS and found.size > LARGEST_HEADER:
            raise Refusal("bad_archive", f"the archive has a header of {found.size} bytes; `tar c FILE…` makes none")
        return found


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, left: int) -> int:
    """Bytes written."""
    name = PurePosixPath(member.name).name
    source = archive.extractfile(member) if member.isreg() else None
    if source is None or FILE_NAME.fullmatch(name) is None:
        raise Refusal(
            "unexpected_member",
            f"the archive holds {member.name[:100]!r}; only lm-eval's results_*.json and samples_*.jsonl belong there",
        )
    target = folder / name.removesuffix(".gz")
    if target.exists():
        raise Refusal("unexpected_member", f"the archive holds {target.name} twice; send one evaluation at a time")
    with source, target.open("wb") as file:
        return _copied(gzip.GzipFile(fileobj=source) if name.endswith(".gz") else source, file, left)


def _copied(source: IO[bytes] | gzip.GzipFile, file: IO[bytes], left: int) -> int:
    written = 0
    while chunk := source.read(CHUNK_BYTES):
        written += len(chunk)
        if written > left:
            raise Refusal("archive_too_large", "the archive holds more than this service takes, unpacked", status=413)
        file.write(chunk)
    return written
