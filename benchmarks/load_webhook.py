"""Webhooks of GitHub accepted in under 50 ms at p99, at 200 a second, kept once each.

    python -P benchmarks/load_webhook.py [--rate 200] [--seconds 20] [--redis URL: with the rate limits of production on]

Each is sent at its own time, whatever became of those before; its latency counts from then, so a service that falls behind
shows. Client and service share the machine, so the client writes prepared bytes to sockets: httpx took more of a core than
the service did. Beside it stand the commits of the same PostgreSQL meanwhile: what no service can be faster than.
"""

import asyncio
import hashlib
import hmac
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parent))

from load_place import Figure, admin, new_database, parser, percentile, service, tell

WANTED_MS = 50.0
SECRET = "of a service that lives for a minute"  # noqa: S105
FIELDS = 330
"""GitHub's own payloads of pull requests have 20 to 30 kB, most of them addresses."""

MARK = "00000000-0000-4000-8000-000000000000"
"""Where each delivery's body has its own id: equal bodies would be refused as replays."""

ACCEPTED = b"HTTP/1.1 202 "
COMMIT_PAUSE = 0.1
IDLE_SECONDS = 2.0
"""The service closes connections that were idle for 5."""


def webhook_body() -> bytes:
    """A payload of 25 kB in some hundred fields, as nested as GitHub's."""
    place = "https://api.github.com/repos/acme/kernels/pulls/7"
    parts = [{"id": number, "url": f"{place}/{number}", "title": None, "draft": False} for number in range(FIELDS)]
    return json.dumps({"action": "synchronize", "number": 7, "id": MARK, "pull_request": {"parts": parts}}).encode()


def bytes_of(body: bytes) -> bytes:
    """The request, but for the id of its delivery."""
    signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    lines = ("POST /github/webhook HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", "X-GitHub-Event: ping",
             f"X-Hub-Signature-256: {signature}", f"Content-Length: {len(body)}", "X-GitHub-Delivery: ")  # fmt: skip
    return "\r\n".join(lines).encode()


class Sender:
    """Sends a body again and again, each time with an id of its own in it, on connections that are kept."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._host, self._port = place.hostname, place.port
        self._body = webhook_body()
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def send(self) -> None:
        """Returns once it is accepted."""
        reader, writer = await self._connection()
        delivery = str(uuid4()).encode()
        body = self._body.replace(MARK.encode(), delivery)
        writer.write(bytes_of(body) + delivery + b"\r\n\r\n" + body)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(ACCEPTED), head
        length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        self._idle.append((time.perf_counter(), reader, writer))

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._idle and self._idle[-1][0] > time.perf_counter() - IDLE_SECONDS:
            return self._idle.pop()[1:]
        self.close()  # all others are idle for longer
        return await asyncio.open_connection(self._host, self._port)

    def close(self) -> None:
        for _, _, writer in self._idle:
            writer.close()
        self._idle.clear()


async def send_all(url: str, rate: int, seconds: float) -> list[float]:
    """Milliseconds of each request from the moment at which it was due."""
    sender = Sender(url)
    start = time.perf_counter() + 0.5

    async def one(number: int) -> float:
        due = start + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        await sender.send()
        return (time.perf_counter() - due) * 1000

    try:
        return await asyncio.gather(*(one(number) for number in range(int(rate * seconds))))
    finally:
        sender.close()


@contextmanager
def commits(url: str) -> Iterator[list[float]]:
    """Milliseconds of one small transaction after the other while the block runs."""
    took: list[float] = []
    stop = threading.Event()

    def commit() -> None:
        with admin(url) as connection:
            connection.execute("create table load_commits (number int)")
            while not stop.wait(COMMIT_PAUSE):
                started = time.perf_counter()
                connection.execute("insert into load_commits values (1)")
                took.append((time.perf_counter() - started) * 1000)

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        yield took
    finally:
        stop.set()
        thread.join()


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
        with commits(url) as alone:
            took = asyncio.run(send_all(str(client.base_url), chosen.rate, chosen.seconds))
        with admin(url) as connection:
            row = connection.execute("select count(*) from github_deliveries").fetchone()
    assert row and row[0] == len(took) + 2 * chosen.rate, row
    for what, values in (("webhooks", took), ("commits of one small row", alone)):
        shares = ", ".join(f"p{share * 100:.0f} {percentile(values, share):.1f}" for share in (0.5, 0.95, 0.99))
        print(f"{what}: {shares}, slowest {max(values):.1f} ms")
    tell([Figure(f"{len(took)} webhooks at {chosen.rate} a second, p99", percentile(took, 0.99), WANTED_MS, "ms")])


if __name__ == "__main__":
    main()
