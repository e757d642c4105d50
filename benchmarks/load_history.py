"""Fills a database with a long history: runs of two lanes and two arms, every answer, and views that were judged for real.

As a program: `python -P benchmarks/load_history.py --database driftline_load --evaluations 10000` makes the database anew and
leaves it there, for load_queries.py and for whoever wants to look at plans. Foreign keys are not checked while it writes.
"""

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
from driftline_service.clock import now_utc
from driftline_service.database import months
from driftline_service.database.engine import make_engine, make_sessions
from driftline_service.database.migrate import migrate
from driftline_service.database.question_hash import question_hash
from driftline_service.runs.judgement import judge_run
from driftline_service.runs.planner import hash_lane

sys.path.insert(0, str(Path(__file__).resolve().parent))

from load_answers import FLAVOURS, answers, forced, lane, scores
from load_place import admin, parser, url_of

LANES = (lane("granite V0"), lane("granite V1"))
REPOSITORIES = 20
DAYS = 180
JUDGED = 3
"""Runs that are judged for real; all others show the first one's view."""

ARMS = ("base", "head")
FACTS = {"name": "w", "host": "h", "environment_id": "env-1", "sandbox": "bubblewrap", "gpu_type": None}
Say = Callable[[str], None]


def fill(url: str, *, evaluations: int, with_logprobs: int, say: Say = print) -> None:
    """Runs enough for so many evaluations; the newest `with_logprobs` of those have log-probabilities too."""
    runs = evaluations // (len(LANES) * len(ARMS))
    started = time.monotonic()

    def tell(what: str) -> None:
        say(f"{time.monotonic() - started:7.1f} s  {what}")

    with admin(url) as connection:
        connection.execute("set session_replication_role = replica")
        connection.execute("set synchronous_commit = off")
        connection.execute("set timezone = 'UTC'")
        _make_months(url)
        _questions(connection)
        _runs(connection, runs)
        tell(f"{runs} runs")
        for month in connection.execute("select distinct month from attempts order by 1").fetchall():
            _samples(connection, month[0])
            tell(f"answers of {month[0]:%Y-%m}")
        _logprobs(connection, with_logprobs)
        tell(f"log-probabilities of {with_logprobs} evaluations")
        _judge(url, connection)
        connection.execute("vacuum analyze")
        tell("judged and analyzed")


def _make_months(url: str) -> None:
    engine = make_engine(url)
    month = (now_utc() - timedelta(days=DAYS)).date().replace(day=1)
    with make_sessions(engine).begin() as session:
        present = {(table, month) for table, month in months.missing_months(session, now_utc().date())}
        assert not present, "the migration makes this month's tables"
        while month < now_utc().date().replace(day=1):
            for table in months.TABLES:
                months.make_month(session, table, month)
            month = months.following(month)
    engine.dispose()


def _questions(connection: psycopg.Connection) -> None:
    """The questions, and every flavour's answers and log-probabilities to be copied from."""
    connection.execute("create unlogged table load_answers (flavour int, doc_id int, rank int, content text, doc text, "
                       "prompt text, target text, response text)")  # fmt: skip
    connection.execute("create unlogged table load_forced (flavour int, doc_id int, scored int, logprobs bytea)")
    with connection.cursor().copy("copy questions (content_hash, question, target) from stdin") as copy:
        for each in answers(0):
            copy.write_row((question_hash(each.question, each.target), each.question, each.target))
    with connection.cursor().copy("copy load_answers from stdin") as copy:
        for flavour in range(FLAVOURS):
            for each in answers(flavour):
                hashes = (each.digest(part) for part in ("doc", "prompt", "target"))
                content = question_hash(each.question, each.target)
                copy.write_row((flavour, each.doc_id, each.rank, content, *hashes, each.response))
    with connection.cursor().copy("copy load_forced from stdin") as copy:
        for flavour in range(FLAVOURS):
            for doc_id, scored, logprobs in forced(flavour):
                copy.write_row((flavour, doc_id, scored, logprobs))


def _runs(connection: psycopg.Connection, count: int) -> None:
    """Repositories, runs, lanes, jobs and attempts. The newest runs come last and are still to be judged."""
    repositories = [uuid4() for _ in range(REPOSITORIES)]
    rows: dict[str, list[dict[str, Any]]] = {
        table: [] for table in ("repositories", "runs", "run_lanes", "jobs", "attempts")
    }
    rows["repositories"] = [
        {"id": row, "url": f"https://example.org/{number}.git", "main_branch": "main"}
        for number, row in enumerate(repositories)
    ]
    now = datetime.now(UTC)
    for number in range(count):
        at = now - timedelta(days=DAYS) * (count - number) / count
        _one_run(rows, number, repositories[number % REPOSITORIES], at)
    for table, made in rows.items():
        _copy(connection, table, made)


def _one_run(rows: dict[str, list[dict[str, Any]]], number: int, repository: UUID, at: datetime) -> None:
    run = uuid4()
    shas = {"base": f"{number // REPOSITORIES:040x}", "head": f"{number + (1 << 40):040x}"}
    resolved = {
        f"{arm}_{name}": value
        for arm in ARMS
        for name, value in {"ref": arm, "sha": shas[arm], "subject": f"commit {number}", "kernel_path": "k",
                            "kernel_tree": shas[arm]}.items()
    }  # fmt: skip
    rows["runs"].append(resolved | {
        "id": run, "name": f"run {number}", "repository_id": repository, "layout": "mamba2_varlen", "state": "judging",
        "margin": 0.025, "created_by": "a person", "created_at": at, "started_at": at,
    })  # fmt: skip
    for position, each in enumerate(LANES):
        rows["run_lanes"].append({
            "run_id": run, "position": position, "name": each.name, "lane": each.model_dump_json(),
            "lane_hash": hash_lane(each),
        })  # fmt: skip
        for arm in ARMS:
            _evaluation(rows, (run, arm, shas[arm], position), number, at)


def _evaluation(
    rows: dict[str, list[dict[str, Any]]], place: tuple[UUID, str, str, int], number: int, at: datetime
) -> None:
    run, arm, sha, position = place
    job, attempt, end = uuid4(), uuid4(), at + timedelta(minutes=20)
    flavour = (number * 4 + position * 2 + ARMS.index(arm)) % FLAVOURS
    rows["jobs"].append({
        "id": job, "run_id": run, "kind": "evaluate", "arm": arm, "commit_sha": sha, "kernel_path": "k",
        "lane_name": LANES[position].name, "lane_hash": hash_lane(LANES[position]), "queue": "cpu", "state": "succeeded",
        "adopted_attempt_id": attempt, "created_at": at, "started_at": at, "finished_at": end,
    })  # fmt: skip
    rows["attempts"].append({
        "id": attempt, "job_id": job, "number": 1, "state": "succeeded", "worker_name": "w", "worker": json.dumps(FACTS),
        "environment_id": "env-1", "token_hash": attempt.hex, "lease_until": end, "next_sequence": 3,
        "must_match": json.dumps({"model": "granite@1"}), "recorded": json.dumps({"flavour": str(flavour)}),
        "scores": json.dumps(scores(flavour)), "created_at": at, "finished_at": end,
    })  # fmt: skip


def _copy(connection: psycopg.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    columns = list(rows[0])
    with connection.cursor().copy(f"copy {table} ({', '.join(columns)}) from stdin") as copy:
        for row in rows:
            copy.write_row([row[column] for column in columns])


def _samples(connection: psycopg.Connection, month: date) -> None:
    """Into the month's own table, an attempt after the other, as they would have come."""
    connection.execute(
        f"insert into samples_{month:%Y_%m} (attempt_id, doc_id, month, rank, content_hash, doc_hash, prompt_hash, target_hash, "  # noqa: S608
        "response, finish_reason, prompt_tokens, response_tokens, left_truncated) "
        "select attempts.id, doc_id, month, rank, content, doc, prompt, target, response, 'stop', 900, 90, false "
        "from (select * from attempts where month = %s order by id) as attempts "
        "join load_answers on flavour = (recorded ->> 'flavour')::int",
        [month],
    )


def _logprobs(connection: psycopg.Connection, newest: int) -> None:
    connection.execute(
        "insert into teacher_forced (attempt_id, doc_id, month, logprobs, scored_prompt_tokens) "
        "select attempts.id, doc_id, month, logprobs, scored "
        "from (select * from attempts order by created_at desc limit %s) as attempts "
        "join load_forced on flavour = (recorded ->> 'flavour')::int",
        [newest],
    )


def _judge(url: str, connection: psycopg.Connection) -> None:
    """The newest for real; the others get what the newest says, so that lists and pages hold views of the real size."""
    newest = [row[0] for row in connection.execute("select id from runs order by created_at desc limit %s", [JUDGED])]
    engine = make_engine(url)
    for run_id in newest:
        assert judge_run(make_sessions(engine), run_id, now_utc())
    engine.dispose()
    connection.execute(
        "update runs set state = 'done', finished_at = runs.created_at + interval '21 minutes', view = judged.view, "
        "method_version = judged.method_version, inputs_hash = judged.inputs_hash "
        "from (select * from runs where id = %s) as judged where runs.state = 'judging'",
        [newest[0]],
    )
    connection.execute("truncate run_verdicts")  # no trigger counts what a replica writes
    connection.execute(
        "insert into run_verdicts (verdict, kernel_check, runs) "
        "select view ->> 'verdict', view -> 'kernel_check' ->> 'result', count(*) from runs group by 1, 2"
    )
    connection.execute("drop table load_answers, load_forced")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--database", default="driftline_load", help="its name; made anew. Default %(default)s")
    options.add_argument("--evaluations", type=int, default=10_000, help="each of 1,319 answers; default %(default)s")
    options.add_argument("--with-logprobs", type=int, default=400,
                         help="how many of the newest have log-probabilities, 6 MB each; default %(default)s")  # fmt: skip
    chosen = options.parse_args()
    with admin(chosen.server) as connection:
        connection.execute(f"drop database if exists {chosen.database} with (force)")
        connection.execute(f"create database {chosen.database}")
    url = url_of(chosen.server, chosen.database)
    migrate(url)
    fill(url, evaluations=chosen.evaluations, with_logprobs=chosen.with_logprobs)
    print(url)


if __name__ == "__main__":
    main()
