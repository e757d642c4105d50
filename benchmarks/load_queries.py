"""Pages and queries beside a long history: run pages, comparisons and trends, each within 100 ms at p95.

    python -P benchmarks/load_history.py --evaluations 10000     # once; prints the URL of what it filled
    python -P benchmarks/load_queries.py --database-url URL

Without --database-url it fills a database of its own (--evaluations) and drops it afterwards. What is asked goes through the
real service over HTTP, one request at a time; a live page is that of a run of which one lane is still measured.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent))

from load_answers import QUESTIONS
from load_history import LANES, fill
from load_place import Figure, admin, new_database, parser, percentile, service, tell

WANTED_MS = 100.0
SHARE = 0.95
REPOSITORY = "https://example.org/3.git"


def targets(url: str) -> dict[str, list[str]]:
    """What is asked -> paths that take turns. The newest runs have log-probabilities, as a run that is looked at has."""
    with admin(url) as connection:
        newest = [
            row[0]
            for row in connection.execute("select id from runs where state = 'done' order by created_at desc limit 50")
        ]
        older = [row[0] for row in connection.execute("select id from runs where state = 'done' order by id limit 50")]
    lanes = [lane.name for lane in LANES]
    return {
        "list of runs": ["/"],
        "page of a run": [f"/runs/{run}" for run in (*newest, *older)],
        "a run as JSON": [f"/api/v1/runs/{run}" for run in (*newest, *older)],
        "changed answers of a run, page": [f"/runs/{run}/samples" for run in newest],
        "changed answers of a run, JSON": [f"/api/v1/runs/{run}/samples" for run in newest],
        "trend of a lane, JSON": [f"/api/v1/lanes/{lane}/history" for lane in lanes],
        "trend of a lane in one repository, JSON": [
            f"/api/v1/lanes/{lane}/history?repository={REPOSITORY}" for lane in lanes
        ],
        "page of a lane in one repository": [f"/lanes/{lane}?repository={REPOSITORY}" for lane in lanes],
        "page of workers": ["/workers"],
        "metrics": ["/metrics"],
    }


def milliseconds(client: httpx.Client, paths: list[str], times: int) -> list[float]:
    found = []
    for _, path in zip(range(times), cycle(paths), strict=False):
        started = time.perf_counter()
        answer = client.get(path)
        found.append((time.perf_counter() - started) * 1000)
        assert answer.status_code == httpx.codes.OK, (path, answer.status_code, answer.text[:300])
    return found


def measure(url: str, times: int) -> Iterator[Figure]:
    with service(url) as client:
        for what, paths in targets(url).items():
            milliseconds(client, paths, 3)  # templates, plans, caches of the first
            yield Figure(
                f"{what}, p95 of {times}", percentile(milliseconds(client, paths, times), SHARE), WANTED_MS, "ms"
            )


def count(url: str) -> str:
    with admin(url) as connection:
        attempts = connection.execute("select count(*) from attempts").fetchone()
        size = connection.execute("select pg_size_pretty(pg_database_size(current_database()))").fetchone()
    assert attempts and size
    return f"{attempts[0]} evaluations, {attempts[0] * QUESTIONS / 1e6:.2f} million answers, {size[0]}"


@contextmanager
def filled(server: str, url: str | None, evaluations: int) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with new_database(server) as made:
        fill(made, evaluations=evaluations, with_logprobs=min(400, evaluations))
        yield made


def main(measured: Callable[[str, int], Iterator[Figure]] = measure) -> None:
    options = parser(__doc__)
    options.add_argument("--database-url", help="what load_history.py printed")
    options.add_argument("--evaluations", type=int, default=10_000, help="without --database-url; default %(default)s")
    options.add_argument("--times", type=int, default=100, help="requests of each kind; default %(default)s")
    chosen = options.parse_args()
    with filled(chosen.server, chosen.database_url, chosen.evaluations) as url:
        print(count(url))
        tell(list(measured(url, chosen.times)))


if __name__ == "__main__":
    main()
