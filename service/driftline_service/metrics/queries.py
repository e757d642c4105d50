"""Counts and ages of what is queued, running and done, one query a family. The database is the truth, so every replica
of the service reports the same."""

from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, text
from sqlalchemy.orm import Session

Rows = list[tuple[Any, ...]]

JOBS_UNFINISHED = text("""
    select queue, kind, state, count(*) from jobs where state in ('queued', 'running') group by 1, 2, 3
""")

OLDEST_QUEUED = text("""
    select queue, extract(epoch from :now - min(outbox.not_before))
    from jobs join outbox on outbox.job_id = jobs.id
      and outbox.not_before between coalesce(jobs.not_before, '-infinity') and :now
    where state = 'queued' group by 1
""")
"""Since its message was due, that is since a worker could have had it: a job that waits for its run's builds has none yet.
Sent messages are kept for a day, so no age is above that."""

JOB_OUTCOMES = text("""
    select kind, state, coalesce(failure_kind, '') as class, count(*)
    from jobs where state not in ('queued', 'running') group by 1, 2, 3
""")

ATTEMPT_FAILURES = text("""
    select jobs.kind, coalesce(attempts.failure_kind, '') as class, count(*)
    from attempts join jobs on jobs.id = attempts.job_id where attempts.state = 'failed' group by 1, 2
""")

RUNS = text("select state, count(*) from runs group by 1")

VERDICTS = text("select verdict, kernel_check, runs from run_verdicts")

CHILD_SECONDS = text("""
    select jobs.kind, jobs.queue, sum(attempts.child_seconds)
    from attempts join jobs on jobs.id = attempts.job_id group by 1, 2
""")

OUTBOX = text("""
    select count(*), coalesce(extract(epoch from :now - min(not_before)), 0)
    from outbox where sent_at is null and not_before <= :now
""")

OVERDUE_LEASES = text("""
    select count(*), coalesce(extract(epoch from :now - min(lease_until)), 0)
    from attempts where state = 'running' and lease_until < :now
""")

RECONCILERS = text("""
    select count(*) from pg_locks
    where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())
      and ((classid::bigint << 32) | objid::bigint) = :key
""")

WEBHOOKS = text("""
    select count(*), coalesce(extract(epoch from :now - min(received_at)), 0)
    from github_deliveries where handled_at is null and tries < :most
""")

WORKERS = text("select count(*) filter (where last_seen >= :since), count(*) from workers")


def rows(session: Session, query: TextClause, **values: datetime | int) -> Rows:
    """All rows of one of this module's queries."""
    return [tuple(row) for row in session.execute(query, values)]
