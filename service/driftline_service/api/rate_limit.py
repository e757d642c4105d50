"""How many requests a token and an address may make; the rest are answered 429 before anything is read or looked up.

The counts lie in Redis, so that all replicas of the service share them. A Redis that is away limits nobody: PostgreSQL's
word stays right whoever asks, and a service that answers too much is better than one that answers nothing.
"""

import math
import time
from hashlib import sha256
from ipaddress import IPv6Address, ip_address

from redis import asyncio as redis
from redis.exceptions import RedisError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from driftline_service.api import problems
from driftline_service.logs import logger
from driftline_service.settings import Rates

UNCOUNTED = ("/healthz", "/readyz", "/metrics", "/static/", "/worker/", "/github/webhook")
"""What machines of ours ask, or what carries a signature: a hundred workers may share one address, and GitHub has few."""

REDIS_SECONDS = 0.25
"""A Redis near by answers within a millisecond."""

RECOVERY_SECONDS = 5.0
"""How long a Redis that did not answer is left alone: else every request would wait for it."""

WINDOW_SECONDS = 60.0

TAKE = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local each, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local full = tonumber(redis.call('GET', KEYS[1]) or now)
if full < now then full = now end
local wait = full + each - now - window
if wait > 0 then return tostring(wait) end
redis.call('SET', KEYS[1], string.format('%.6f', full + each), 'PX', math.ceil(window * 2000))
return '0'
"""
"""A bucket as the one moment at which it would be empty again (GCRA): one key, one round, Redis's own clock."""

_log = logger("driftline.api")


class Buckets:
    """The counts. Keys hold a hash of the token, never the token."""

    def __init__(self, redis_url: str) -> None:
        self._redis = redis.from_url(redis_url, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS)
        self._take = self._redis.register_script(TAKE)
        self._away_until = 0.0

    async def wait(self, key: str, per_minute: int) -> float:
        """Take one request: 0, or the seconds after which one would pass."""
        if time.monotonic() < self._away_until:
            return 0.0
        try:
            keys = [f"driftline:rate:{key}"]
            return float(await self._take(keys=keys, args=[WINDOW_SECONDS / per_minute, WINDOW_SECONDS]))
        except (RedisError, OSError) as error:
            self._away_until = time.monotonic() + RECOVERY_SECONDS
            _log.warning("rate_limits_off", error=str(error), seconds=RECOVERY_SECONDS)
            return 0.0

    async def close(self) -> None:
        await self._redis.aclose()


class RateLimit:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, rates: Rates, buckets: Buckets) -> None:
        self._app = app
        self._rates = rates
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(UNCOUNTED):
            for key, per_minute, whose in _counted(scope, self._rates):
                wait = await self._buckets.wait(key, per_minute)
                if wait > 0:
                    await _refuse(scope, receive, send, f"{whose} made more than {per_minute} requests a minute", wait)
                    return
        await self._app(scope, receive, send)


def _counted(scope: Scope, rates: Rates) -> list[tuple[str, int, str]]:
    """(key, requests a minute, in words) of each bucket that this request is taken from. The address comes first and
    always counts, so that made-up tokens win nothing."""
    found = []
    if rates.address and scope.get("client"):
        address = bucket_of(scope["client"][0])
        found.append((f"address:{address}", rates.address, f"the address {address}"))
    given = Headers(scope=scope).get("authorization")
    if rates.token and given is not None:
        found.append((f"token:{sha256(given.encode()).hexdigest()}", rates.token, "this token"))
    return found


def bucket_of(address: str) -> str:
    """The address; of IPv6 its network of 64 bits, which one host has for itself."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"


async def _refuse(scope: Scope, receive: Receive, send: Send, why: str, wait: float) -> None:
    seconds = max(1, math.ceil(wait))
    await problems.refuse(
        scope, receive, send, status=429, reason="too_many_requests", detail=f"{why}; try again in {seconds} s",
        headers={"retry-after": str(seconds)},
    )  # fmt: skip
