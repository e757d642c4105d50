"""What every answer tells a browser, pages or JSON: guess no other type, keep nothing of the API, tell other sites nothing."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

EVERYWHERE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"}
OF_THE_API = {"Cache-Control": "no-store"}
"""A new token is shown in an answer, and what a private service shows is for whoever asked."""


class SafeHeaders:
    """ASGI middleware. What an answer says itself stands: pages say more (pages/renderer.py)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        wanted = EVERYWHERE | (OF_THE_API if scope["path"].startswith("/api/") else {})

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in wanted.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, adding)
