"""A file that is known by its sha256: fetched or copied to its place whole and right, or not at all.

What a broken connection left is kept beside the place and gone on from; only a file with the right sum takes the name.
"""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ATTEMPTS = 4
"""Each goes on where the last one broke off."""

LARGEST_BYTES = 1 << 30
"""gsm8k has 5 MB; a server that sends without end must not fill the disk."""

TIMEOUT_SECONDS = 30.0
PARTIAL = ".part"


class NotFetched(Exception):  # noqa: N818 - what it is
    """The file is not in its place. The message names the address or file and what to do."""


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_pinned(given: Path, target: Path, sha256: str) -> None:
    """Put a file of this machine in its place.

    Raises:
        NotFetched: it has another sum.
        OSError: it cannot be read, or the place not written to.
    """
    if (found := sha256_of(given)) != sha256:
        raise NotFetched(f"{given} has sha256 {found}, {sha256} is wanted: it is another version")
    if given.resolve() == target.resolve():
        return
    partial = _partial(target)
    shutil.copyfile(given, partial)
    partial.replace(target)


def fetch_pinned(url: str, target: Path, sha256: str) -> None:
    """Get a file over HTTP into its place, in as many goes as it takes.

    Raises:
        NotFetched: no answer, an answer that is none, or a file of another sum, which is removed.
        OSError: the place cannot be written to.
    """
    partial = _partial(target)
    while True:
        resumed = partial.is_file()
        _download(url, partial)
        found = sha256_of(partial)
        if found == sha256:
            partial.replace(target)
            return
        partial.unlink()
        if not resumed:  # else its beginning may have been another file's
            raise NotFetched(f"{url} has sha256 {found}, {sha256} is wanted: it is another version, or no such file")


def _download(url: str, partial: Path) -> None:
    why = ""
    with httpx.Client(follow_redirects=True, timeout=TIMEOUT_SECONDS) as client:
        for _ in range(ATTEMPTS):
            try:
                _go_on(client, url, partial)
            except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.TooManyRedirects) as error:
                raise NotFetched(f"{url}: {error}") from error
            except httpx.TransportError as error:
                why = f"{type(error).__name__}: {error}".rstrip(": ")
            else:
                return
    raise NotFetched(f"{url}: {why}; what came is kept, so try again, or copy the file here and give it by --file")


def _partial(target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.with_name(target.name + PARTIAL)


def _go_on(client: httpx.Client, url: str, partial: Path) -> None:
    """Append what is missing. A server that knows no ranges sends the whole file again."""
    have = partial.stat().st_size if partial.is_file() else 0
    with _asked(client, url, have) as answer:
        if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:  # it is whole, or of another file
            return
        if answer.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
            raise NotFetched(f"{url} answered {answer.status_code} {answer.reason_phrase}; check the address")
        with partial.open("ab" if answer.status_code == httpx.codes.PARTIAL_CONTENT else "wb") as file:
            for data in answer.iter_raw():
                file.write(data)
                if file.tell() > LARGEST_BYTES:
                    raise NotFetched(f"{url} sends more than {LARGEST_BYTES >> 20} MB; check the address")


@contextmanager
def _asked(client: httpx.Client, url: str, have: int) -> Iterator[httpx.Response]:
    """As it is stored: a compressed answer has no ranges to go on from."""
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", url, headers=headers) as answer:
        yield answer
