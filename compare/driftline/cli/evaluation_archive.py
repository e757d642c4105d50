"""lm-eval's files of one evaluation, found in a folder and packed as one compressed archive. Nothing is read or judged."""

import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from driftline.cli.failure import CommandError

TIME = re.compile(r"_(\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}(?:\.\d+)?)\.(?:json|jsonl|jsonl\.gz)$")
"""The time at which lm-eval saved, which all files of one evaluation share."""

FAST = 1
"""gzip's level: samples shrink to a tenth even so, and the network here is seldom the bottleneck."""


def evaluation_files(place: Path) -> list[Path]:
    """The results file of one evaluation and the samples files beside it; `place` is their folder or the results file.

    Raises:
        CommandError: if there is no evaluation, more than one, or one without samples.
    """
    results = _results(place)
    stamp = TIME.search(results.name)
    beside = sorted([*results.parent.glob("samples_*.jsonl"), *results.parent.glob("samples_*.jsonl.gz")])
    samples = [path for path in beside if stamp is None or _stamp(path) == stamp[1]]
    if not samples:
        raise CommandError(
            f"{results} has no samples_*.jsonl of the same time beside it; run lm-eval with --log_samples, "
            "or import its figures alone with --results-only"
        )
    return [results, *samples]


@contextmanager
def archive_of(files: list[Path]) -> Iterator[IO[bytes]]:
    """The files as a gzipped tar archive on disk, from its beginning; gone afterwards.

    Raises:
        CommandError: if a file cannot be read.
    """
    with TemporaryFile() as made:
        try:
            with tarfile.open(fileobj=made, mode="w:gz", compresslevel=FAST) as archive:
                for path in files:
                    archive.add(path, arcname=path.name, recursive=False, filter=_anonymous)
        except OSError as error:
            raise CommandError(f"{error.filename or files[0]}: {error.strerror}") from error
        made.seek(0)
        yield made


def _results(place: Path) -> Path:
    if place.is_file():
        return place
    if not place.is_dir():
        raise CommandError(f"{place}: no such folder; name lm-eval's --output_path, or a results file in it")
    found = sorted(place.rglob("results_*.json"))
    if not found:
        raise CommandError(f"{place} holds no results_*.json; name the folder that lm-eval's --output_path named")
    if len(found) > 1:
        raise CommandError(f"{place} holds {len(found)} evaluations; name one, e.g. {found[-1]}")
    return found[0]


def _stamp(path: Path) -> str | None:
    found = TIME.search(path.name)
    return None if found is None else found[1]


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Names of the people and groups of this machine are nobody's business."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
