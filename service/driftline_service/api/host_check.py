"""Refuses requests whose Host or Origin auth/hosts.py does not allow, before anything else sees them."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from driftline_service.api import problems
from driftline_service.auth.hosts import HostRule


class HostCheck:
    """ASGI middleware that applies the rule to every request."""

    def __init__(self, app: ASGIApp, rule: HostRule) -> None:
        self._app = app
        self._rule = rule

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            refusal = self._rule.refusal(method=scope["method"], host=headers.get("host"), origin=headers.get("origin"))
            if refusal is not None:
                status, reason, detail = refusal
                await problems.refuse(scope, receive, send, status=status, reason=reason, detail=detail)
                return
        await self._app(scope, receive, send)
