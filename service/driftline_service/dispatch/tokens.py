"""Short-lived bearer tokens: random, compared and stored by their sha256 only."""

from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe

TOKEN_BYTES = 32
"""256 random bits: too many to guess."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was just minted. `secret` leaves the service once and is kept nowhere."""

    secret: str
    hash: str

    def __repr__(self) -> str:
        return f"Token(hash={self.hash[:8]}…)"


def mint() -> Token:
    secret = token_urlsafe(TOKEN_BYTES)
    return Token(secret, hash_of(secret))


def hash_of(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
