"""The admin token: made at random, kept in a file only its owner reads, compared by hash. HTTP is not known here."""

import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from driftline_service.dispatch.tokens import TOKEN_BYTES, hash_of
from driftline_service.settings import Settings

PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class AdminToken:
    """What is kept of the token: its sha256. A token is 256 random bits, so a fast hash suffices."""

    digest: str | None

    @classmethod
    def of(cls, settings: Settings) -> "AdminToken":
        if settings.admin_token is not None:
            return cls(hash_of(settings.admin_token.get_secret_value()))
        return cls(settings.admin_token_sha256)

    def matches(self, given: str) -> bool:
        """Whether `given` is the token; never, if none is configured. Takes the same time wherever they differ."""
        return self.digest is not None and hmac.compare_digest(self.digest, hash_of(given))


def ensure_token_file(path: Path) -> None:
    """Make the token's file unless it is there, and close it to others in any case."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        path.chmod(PRIVATE)
        if path.read_text(encoding="ascii").strip():
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(TOKEN_BYTES))


def new_token() -> str:
    """256 random bits. The prefix lets scanners for leaked secrets find one."""
    return f"driftline_{secrets.token_urlsafe(TOKEN_BYTES)}"
