"""Caps on request bodies, by path, before anything reads them."""

from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from driftline_service.api import problems

PATIENCE_BYTES = 16 << 20
"""How much of a refused body is read and thrown away; a client that sends more is cut off."""

IMPORTS_PATH = "/api/v1/imports"
"""Its body goes to a file as it comes, so it may be large."""

WEBHOOK_PATH = "/github/webhook"
WEBHOOK_BYTES = 10 << 20
"""GitHub sends up to 25 MB; what is read here never comes near a tenth of that."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Largest bodies in bytes: the public API's, a worker's batch of lines, and an archive of lm-eval's files."""

    public: int
    worker: int
    archive: int

    def of(self, path: str) -> int:
        if path == IMPORTS_PATH:
            return self.archive
        if path == WEBHOOK_PATH:
            return WEBHOOK_BYTES
        return self.worker if path.startswith("/worker/") else self.public


class BodyLimit:
    """ASGI middleware: a body above its cap is a 413 problem, whether its length is declared or not."""

    def __init__(self, app: ASGIApp, limits: BodyLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limits.of(scope["path"])
        if _declared(scope) > limit:
            await _drain(receive)
            headers = {"connection": "close"}
            await problems.refuse(
                scope, receive, send, status=413, reason="body_too_large", detail=_detail(limit), headers=headers
            )
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:  # inside the application: its own handler answers
                if message.get("more_body", False):
                    await _drain(receive)
                raise HTTPException(413, _detail(limit))
            return message

        await self._app(scope, counted, send)


def _declared(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0


async def _drain(receive: Receive) -> None:
    """Read on for a while: a client that is still sending would see a broken connection instead of the answer."""
    drained = 0
    while drained < PATIENCE_BYTES:
        message = await receive()
        drained += len(message.get("body", b""))
        if not message.get("more_body", False):
            return


def _detail(limit: int) -> str:
    return f"the body is larger than {limit} bytes"
