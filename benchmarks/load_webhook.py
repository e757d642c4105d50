"""Webhooks of GitHub accepted in under 50 ms at p99, at 200 a second, kept once each.

    python -P benchmarks/load_webhook.py [--rate 200] [--seconds 20] [--redis URL: with the rate limits of production on]

Each is sent at its own time, whatever became of those before; its latency counts from then, so a service that falls behind
shows. Client and service share the machine.
"""

import asyncio
import hashlib
import hmac
import json
import sys
import time
from pathlib import Path
from uuid import uuid4

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent))

from load_place import Figure, admin, new_database, parser, percentile, service, tell

WANTED_MS = 50.0
SECRET = "of a service that lives for a minute"  # noqa: S105
BODY_LETTERS = 20_000
"""GitHub's own payloads of pull requests have 20 to 30 kB."""


async def send_all(url: str, rate: int, seconds: float) -> list[float]:
    """Milliseconds of each request from the moment at which it was due."""
    body = json.dumps({"action": "synchronize", "filler": "x" * BODY_LETTERS}).encode()
    signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=100)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=30) as client:
        start = time.perf_counter() + 0.5

        async def one(number: int) -> float:
            due = start + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            headers = {"X-Hub-Signature-256": signature, "X-GitHub-Event": "ping", "X-GitHub-Delivery": str(uuid4())}
            answer = await client.post("/github/webhook", content=body, headers=headers)
            assert answer.status_code == httpx.codes.ACCEPTED, answer.text[:300]
            return (time.perf_counter() - due) * 1000

        return await asyncio.gather(*(one(number) for number in range(int(rate * seconds))))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rate", type=int, default=200, help="webhooks a second; default %(default)s")
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("--redis", help="count requests there, as production does")
    chosen = options.parse_args()
    more = {"github_webhook_secret": SECRET}
    if chosen.redis:
        more |= {"broker_url": chosen.redis, "token_requests": "600", "address_requests": "1200"}
    with new_database(chosen.server) as url, service(url, **more) as client:
        asyncio.run(send_all(str(client.base_url), chosen.rate, 2.0))  # connections, plans
        took = asyncio.run(send_all(str(client.base_url), chosen.rate, chosen.seconds))
        with admin(url) as connection:
            row = connection.execute("select count(*) from github_deliveries").fetchone()
    assert row and row[0] == len(took) + 2 * chosen.rate, row
    print(f"median {percentile(took, 0.5):.1f} ms, slowest {max(took):.1f} ms")
    tell([Figure(f"{len(took)} webhooks at {chosen.rate} a second, p99", percentile(took, 0.99), WANTED_MS, "ms")])


if __name__ == "__main__":
    main()
