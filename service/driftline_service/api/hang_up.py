"""Clients that hang up in the middle of sending a body: told in one line of the log. That is their doing, not a fault here.

Reading such a body raises starlette's ClientDisconnect before a route has done anything, so nothing is changed by it.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from driftline_service.api.problems import HUNG_UP
from driftline_service.logs import logger

BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
"""Without one of these a request has no body: whoever leaves then has merely closed a page."""

_log = logger("driftline.api")


class HangUp:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or BODY_HEADERS.isdisjoint(name for name, _ in scope["headers"]):
            await self._app(scope, receive, send)
            return
        received, whole = 0, False

        async def noting() -> Message:
            nonlocal received, whole
            message = await receive()
            if message["type"] == "http.disconnect":
                scope[HUNG_UP] = not whole
            else:
                received += len(message.get("body", b""))
                whole = not message.get("more_body", False)
            return message

        await self._app(scope, noting, send)
        if scope.get(HUNG_UP):
            _log.info("client_hung_up", method=scope["method"], path=scope["path"], bytes=received)
