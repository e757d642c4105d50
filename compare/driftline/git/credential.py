"""A secret lent to git for one host while a block runs: it reaches git through a pipe, so no file, argument or variable
of a process ever holds it. Children in the sandbox are started elsewhere and inherit nothing of it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

NETWORK_COMMANDS = frozenset({"fetch", "ls-remote"})


@dataclass(frozen=True, slots=True)
class Credential:
    """What an https server asks for. `origin` is scheme and host: git offers it to no other one, not after a redirect."""

    origin: str
    user: str
    secret: str = field(repr=False)


class Handed(NamedTuple):
    """What starts a git that may ask for the credential."""

    options: Sequence[str]
    descriptors: Sequence[int]


NOTHING = Handed((), ())
_lent: ContextVar[Credential | None] = ContextVar("credential", default=None)


def credential_for(url: str, secret: str, *, user: str = "x-access-token") -> Credential:
    """The credential for a repository's URL. The user name is the one that GitHub wants with an installation's token."""
    parts = urlsplit(url)
    return Credential(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", user, secret)


@contextmanager
def lent(credential: Credential | None) -> Iterator[None]:
    """git may use it while the block runs, in this thread only. None lends nothing."""
    before = _lent.set(credential)
    try:
        yield
    finally:
        _lent.reset(before)


@contextmanager
def handed_over(command: str) -> Iterator[Handed]:
    """Options and descriptors for a command of git; nothing for one that asks no server."""
    credential = _lent.get()
    if credential is None or command not in NETWORK_COMMANDS:
        yield NOTHING
        return
    reading, writing = os.pipe()
    try:
        os.write(writing, f"username={credential.user}\npassword={credential.secret}\n".encode())
        os.close(writing)
        # git calls a helper with `get`, and afterwards with `store` or `erase`, which has nothing to read any more
        helper = f'!f() {{ test "$1" = get && cat /dev/fd/{reading}; }}; f'
        yield Handed(("-c", f"credential.{credential.origin}.helper={helper}"), (reading,))
    finally:
        os.close(reading)
