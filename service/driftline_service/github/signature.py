"""GitHub's signature of a webhook: HMAC-SHA256 of the raw body, in X-Hub-Signature-256."""

import hmac

PREFIX = "sha256="


def is_signed(body: bytes, signature: str | None, secret: str) -> bool:
    """Whether `signature` is that of these very bytes. Takes the same time wherever they differ."""
    if signature is None or not signature.startswith(PREFIX):
        return False
    expected = hmac.digest(secret.encode(), body, "sha256").hex()
    return hmac.compare_digest(signature.removeprefix(PREFIX).encode(), expected.encode())
