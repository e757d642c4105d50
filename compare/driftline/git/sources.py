"""A commit's text files, read from a mirror without a checkout: which there are, and what is in them."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from driftline.git.errors import GitError
from driftline.git.mirror import Mirror
from driftline.git.names import checked_sha

LARGEST_FILE_BYTES = 2 << 20
"""The longest module of vLLM has 0.4 MB; a larger file is no source that a person wrote, and is left out."""

LARGEST_SUM_BYTES = 256 << 20
"""vLLM's Python files have 45 MB together."""

REGULAR = frozenset({"100644", "100755"})


class Blob(NamedTuple):
    """A regular file of a commit; links and submodules are none."""

    oid: str
    bytes: int


def blobs_of(mirror: Mirror, sha: str) -> dict[str, Blob]:
    """path -> blob of every regular file of a commit that is small enough to be a source.

    Raises:
        GitError: git_failed if the commit is not in the mirror.
    """
    answer = mirror.git.get("ls-tree", "-r", "-l", "-z", "--full-tree", "--end-of-options", checked_sha(sha))
    found: dict[str, Blob] = {}
    for entry in answer.out.decode("utf-8", "surrogateescape").split("\0"):
        head, _, path = entry.partition("\t")
        mode, _, oid, size = (head.split() + [""] * 4)[:4]
        if mode in REGULAR and size.isdigit() and int(size) <= LARGEST_FILE_BYTES:
            found[path] = Blob(oid, int(size))
    return found


def texts_of(mirror: Mirror, blobs: Mapping[str, Blob], wanted: Callable[[str], bool]) -> dict[str, str]:
    """path -> text of the wanted files, in one call of git; bytes that are no UTF-8 are replaced.

    Raises:
        GitError: unsafe_tree if they are too much together, git_failed.
    """
    chosen = {path: blob for path, blob in blobs.items() if wanted(path)}
    total = sum(blob.bytes for blob in chosen.values())
    if total > LARGEST_SUM_BYTES:
        raise GitError("unsafe_tree", f"{len(chosen)} source files hold {total >> 20} MB; at most 256 are read")
    asked = "".join(f"{blob.oid}\n" for blob in chosen.values()).encode()
    answer = mirror.git.ask("cat-file", "--batch", said=asked)
    if answer.code != 0:
        raise GitError("git_failed", f"git cat-file failed in {mirror.git.folder.name}: {answer.err[-300:]}")
    return dict(zip(chosen, _contents(answer.out, len(chosen)), strict=True))


def _contents(out: bytes, count: int) -> Iterable[str]:
    """The answers of `cat-file --batch`: "oid kind size", the content, a line end. A missing blob reads as empty."""
    place = 0
    for _ in range(count):
        end = out.index(b"\n", place)
        words = out[place:end].split()
        place = end + 1
        if words[-1] == b"missing":
            yield ""
            continue
        size = int(words[2])
        yield out[place : place + size].decode("utf-8", "replace")
        place += size + 1
