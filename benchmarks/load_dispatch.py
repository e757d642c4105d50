"""500 jobs that become due at once reach a real Redis within 5 s: one look of the reconciler.

python -P benchmarks/load_dispatch.py [--jobs 500] [--redis redis://127.0.0.1:6379/9]
"""

import os
import sys
import time
from pathlib import Path

import redis
from driftline_service.clock import now_utc
from driftline_service.database.engine import make_engine, make_sessions
from driftline_service.database.tables import OutboxMessage
from driftline_service.dispatch.celery_producer import CeleryProducer
from driftline_service.runs.reconciler import Reconciler
from driftline_service.runs.submission import submit
from sqlalchemy import func, select

sys.path.insert(0, str(Path(__file__).resolve().parent))

from load_place import Figure, new_database, parser, tell
from load_store import new_run

WANTED_SECONDS = 5.0
JOBS_A_RUN = 2
"""The builds of both arms; what follows waits for them."""
QUEUE = "cpu"
REDIS = os.environ.get("DRIFTLINE_TEST_REDIS_URL", "redis://127.0.0.1:6379/0").rpartition("/")[0] + "/9"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--jobs", type=int, default=500)
    options.add_argument("--redis", default=REDIS, help="a database of Redis that may be emptied; default %(default)s")
    chosen = options.parse_args()
    broker = redis.Redis.from_url(chosen.redis)
    broker.flushdb()
    with new_database(chosen.server) as url:
        engine = make_engine(url)
        sessions = make_sessions(engine)
        for number in range(chosen.jobs // JOBS_A_RUN):
            with sessions.begin() as session:
                submit(session, new_run(number))
        producer = CeleryProducer(chosen.redis)
        reconciler = Reconciler(engine, producer, now_utc)
        started = time.perf_counter()
        assert reconciler.step()
        took = time.perf_counter() - started
        with sessions() as session:
            sent = session.scalar(select(func.count()).where(OutboxMessage.sent_at.is_not(None)))
        started = time.perf_counter()
        assert reconciler.step()
        idle = time.perf_counter() - started
        reconciler.close()
        producer.close()
        engine.dispose()
    waiting = sum(int(broker.llen(key)) for key in broker.scan_iter(f"{QUEUE}*"))  # type: ignore[arg-type]
    broker.flushdb()
    broker.close()
    assert sent == waiting == chosen.jobs, (sent, waiting)
    print(f"the next look, with nothing to send, at {chosen.jobs // JOBS_A_RUN} runs: {idle:.2f} s")
    tell([Figure(f"{waiting} queued jobs dispatched", took, WANTED_SECONDS, "s")])


if __name__ == "__main__":
    main()
