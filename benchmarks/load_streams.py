"""200 readers hold the event stream of one run; all of them hear of its next event within two seconds, and pages still answer.

python -P benchmarks/load_streams.py [--clients 200] [--seconds 20]
"""

import asyncio
import sys
import time
from pathlib import Path
from uuid import UUID

import httpx
from driftline_service.database.engine import Sessions, make_engine, make_sessions
from driftline_service.database.event_queries import record
from driftline_service.runs.submission import submit

sys.path.insert(0, str(Path(__file__).resolve().parent))

from load_place import Figure, new_database, parser, percentile, service, tell
from load_store import new_run

WANTED_SECONDS = 2.0
WANTED_PAGE_MS = 100.0
NEWS = "the news of a benchmark"
PATIENCE_SECONDS = 30.0


class Readers:
    """Clients of one run's stream: how many hold it, and when each heard the news."""

    def __init__(self) -> None:
        self.holding = 0
        self.heard: list[float] = []

    async def read(self, client: httpx.AsyncClient, run_id: UUID) -> None:
        async with client.stream("GET", f"/api/v1/runs/{run_id}/events") as answer:
            assert answer.status_code == httpx.codes.OK
            held = False
            async for line in answer.aiter_lines():
                if not held and line.startswith("data:"):
                    held = True
                    self.holding += 1
                if NEWS in line:
                    self.heard.append(time.perf_counter())


async def hold(url: str, sessions: Sessions, run_id: UUID, clients: int, seconds: float) -> list[Figure]:
    readers = Readers()
    limits = httpx.Limits(max_connections=clients + 10)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=httpx.Timeout(60, pool=60)) as client:
        tasks = [asyncio.create_task(readers.read(client, run_id)) for _ in range(clients)]
        await _until(lambda: readers.holding == clients)
        pages = []
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            started = time.perf_counter()
            assert (await client.get(f"/runs/{run_id}")).status_code == httpx.codes.OK
            pages.append((time.perf_counter() - started) * 1000)
            await asyncio.sleep(0.2)
        lost = sum(task.done() for task in tasks)
        told = time.perf_counter()
        await asyncio.to_thread(_tell_news, sessions, run_id)
        await _until(lambda: len(readers.heard) == clients)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    last = max(readers.heard) - told if len(readers.heard) == clients else float("inf")
    return [
        Figure(f"event streams held for {seconds:.0f} s", readers.holding - lost, clients, "clients", at_least=True),
        Figure(f"all {clients} heard of an event", last, WANTED_SECONDS, "s"),
        Figure("page of a run meanwhile, p95", percentile(pages, 0.95), WANTED_PAGE_MS, "ms"),
    ]


async def _until(met: "object") -> None:
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while not met() and time.perf_counter() < deadline:  # type: ignore[operator]
        await asyncio.sleep(0.05)


def _tell_news(sessions: Sessions, run_id: UUID) -> None:
    with sessions.begin() as session:
        record(session, run_id, "news", NEWS)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--clients", type=int, default=200)
    options.add_argument("--seconds", type=float, default=20.0)
    chosen = options.parse_args()
    with new_database(chosen.server) as url, service(url) as client:
        engine = make_engine(url)
        sessions = make_sessions(engine)
        with sessions.begin() as session:
            run_id = submit(session, new_run(1))
        figures = asyncio.run(hold(str(client.base_url), sessions, run_id, chosen.clients, chosen.seconds))
        engine.dispose()
    tell(figures)


if __name__ == "__main__":
    main()
