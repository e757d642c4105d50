"""URLs, refs and SHAs as people type them become checked values, before anything reaches git. Nothing is started."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from driftline.git.errors import GitError

REMOTE_SCHEMES = frozenset({"https", "http", "ssh", "git+ssh"})
"""What may be fetched from other hosts. git:// is neither authenticated nor encrypted, ext:: runs programs."""

LONGEST_URL = 1000
LONGEST_REF = 200

_SCP_LIKE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^:\-].*")
_HOST = re.compile(r"[A-Za-z0-9\[][A-Za-z0-9.:\]-]*")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@=,#%-]*((\^[0-9]{0,2})|(~[0-9]{0,5}))*")
_FULL_SHA = re.compile(r"[0-9a-f]{40}")
_HEX = re.compile(r"[0-9a-f]{4,40}")


@dataclass(frozen=True, slots=True)
class Url:
    """A repository's address as git may be given it; `shown` has no password in it."""

    address: str
    shown: str
    local: bool


def parse_url(text: str) -> Url:
    """A checked repository address. A path on this machine becomes absolute.

    Raises:
        GitError: bad_url.
    """
    if not text or len(text) > LONGEST_URL or text.startswith("-") or not text.isprintable():
        raise GitError(
            "bad_url", f"{text[:80]!r} is no repository address; give an https:// or ssh:// URL, or a folder"
        )
    if "::" in text:
        raise GitError("bad_url", f"{text!r} names a git remote helper; give an https:// or ssh:// URL, or a folder")
    if _SCP_LIKE.fullmatch(text):
        return Url(text, text, local=False)
    if "://" in text:
        return _with_scheme(text)
    if ":" in text.split("/", 1)[0]:
        raise GitError("bad_url", f"{text!r} is neither a URL nor a folder; write user@host:path or an https:// URL")
    path = str(Path(text).absolute())
    return Url(path, path, local=True)


def _with_scheme(text: str) -> Url:
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise GitError("bad_url", f"{text!r} is no URL: {error}") from error
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path.startswith("/"):
        return Url(parts.path, text, local=True)
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme not in REMOTE_SCHEMES:
        allowed = ", ".join(sorted(REMOTE_SCHEMES))
        raise GitError("bad_url", f"{text!r}: scheme {parts.scheme!r} is not fetched; use one of {allowed}")
    if not _HOST.fullmatch(host) or parts.netloc.startswith("-"):
        raise GitError("bad_url", f"{text!r} names no host; write {parts.scheme}://host/path")
    return Url(text, f"{parts.scheme}://{host}{parts.path}", local=False)


def checked_ref(text: str) -> str:
    """A branch, tag, pull/N/head or SHA, perhaps with ^ or ~N behind it; never an option, a range or a reflog entry.

    Raises:
        GitError: bad_ref.
    """
    forbidden = ("..", "@{", "//", "/.", ".lock", "/-")
    name = re.split(r"[\^~]", text, maxsplit=1)[0]
    if (
        len(text) > LONGEST_REF
        or not _REF.fullmatch(text)
        or any(part in text for part in forbidden)
        or name.endswith(("/", "."))
    ):
        raise GitError(
            "bad_ref", f"{text[:LONGEST_REF]!r} is no commit name; give a SHA, a branch, a tag or pull/N/head"
        )
    return text


def checked_sha(text: str) -> str:
    """A full lower-case SHA.

    Raises:
        GitError: bad_ref.
    """
    if not _FULL_SHA.fullmatch(text):
        raise GitError("bad_ref", f"{text[:LONGEST_REF]!r} is no full commit id; give 40 hexadecimal digits")
    return text


def is_full_sha(text: str) -> bool:
    return _FULL_SHA.fullmatch(text) is not None


def may_be_sha(text: str) -> bool:
    """Could it be the beginning of a commit id, with or without ^ or ~N behind it?"""
    return _HEX.fullmatch(re.split(r"[\^~]", text, maxsplit=1)[0]) is not None


def checked_path(text: str) -> str:
    """A relative path inside a tree, without a slash at its end.

    Raises:
        GitError: bad_ref.
    """
    path = text.rstrip("/")
    if not path or path.startswith("/") or "\0" in path or ".." in path.split("/") or ":" in path:
        raise GitError("bad_ref", f"{text[:LONGEST_REF]!r} is no path inside a repository")
    return path
