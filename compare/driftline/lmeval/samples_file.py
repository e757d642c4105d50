"""A samples file, plain or gzip, line by line in constant memory. Nothing is judged here."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, cast

from driftline.lmeval import strict_json
from driftline.lmeval.refusal import BadOutputError
from driftline.lmeval.sample import Sample, sample_from

LONGEST_LINE: Final = 16 * 2**20
"""Bytes. A long prompt with a long answer takes some 100 kB; whatever is longer is no sample, and would fill memory."""


def samples(path: Path) -> Iterator[Sample]:
    """Every line of the file, in its order. Blank lines are passed over.

    Raises:
        BadOutputError: naming the file and line, at the first line that is no sample.
    """
    try:
        with _opened(path) as file:
            offset = 0
            for number, line in enumerate(_lines(file, path), start=1):
                if not line.isspace():
                    where = f"{path} line {number}"
                    yield sample_from(strict_json.parse(line, where), where, offset)
                offset += len(line)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        message = f"{path}: the gzip file is cut or damaged ({error}); copy or evaluate it again"
        raise BadOutputError("bad_gzip", message) from error
    except OSError as error:
        raise BadOutputError("unreadable", f"{path}: {error.strerror or error}") from error


def samples_at(path: Path, offsets: list[int]) -> Iterator[Sample]:
    """The samples that begin at these offsets, in ascending order: gzip can only be read forward."""
    with _opened(path) as file:
        for offset in sorted(offsets):
            file.seek(offset)
            where = f"{path} at byte {offset}"
            yield sample_from(strict_json.parse(file.readline(LONGEST_LINE), where), where, offset)


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            limit = LONGEST_LINE >> 20
            raise BadOutputError("line_too_long", f"{path} line {number}: longer than {limit} MB, so it is no sample")
        yield line
