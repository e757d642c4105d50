"""The API answers as its own description says, whatever is asked: schemathesis reads /openapi.json and asks it.

A longer search: this file with DRIFTLINE_FUZZ_EXAMPLES=300 and a DRIFTLINE_FUZZ_SEED of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
from driftline.contracts.report import RunView
from driftline.contracts.words import RunState, Verdict
from driftline_service.database.engine import make_engine, make_sessions
from driftline_service.database.migrate import migrate
from driftline_service.database.tables import Run
from driftline_service.settings import Settings
from pydantic import SecretStr
from sqlalchemy import update
from sqlalchemy.engine import make_url

Serve = Callable[[Settings], AbstractContextManager[httpx.Client]]

LONG = "DRIFTLINE_FUZZ_EXAMPLES" in os.environ
PHASES = "examples,coverage,fuzzing" if LONG else "examples,fuzzing"
"""A longer search asks of the edges of every field too, some 1,400 requests, which take a minute."""

EXAMPLES = os.environ.get("DRIFTLINE_FUZZ_EXAMPLES", "4")
"""Random requests to each operation, beside those of the description's own examples."""

SEED = os.environ.get("DRIFTLINE_FUZZ_SEED", "1")
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance",
)  # fmt: skip

HOOKS = """
import schemathesis

@schemathesis.serializer("application/x-tar")
def plain(context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
"""
"""An archive is sent as it is made up: schemathesis knows no tar."""


@contextmanager
def own_database(url: str) -> Iterator[str]:
    """What is made here is nobody's else to count."""
    name = f"driftline_fuzz_{uuid4().hex[:12]}"
    own = make_url(url).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"create database {name}")
        migrate(own)
        try:
            yield own
        finally:
            connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def url(settings: Settings) -> Iterator[str]:
    with own_database(settings.database_url.get_secret_value()) as made:
        yield made


@pytest.fixture
def api(settings: Settings, serve: Serve, url: str) -> Iterator[httpx.Client]:
    with serve(settings.model_copy(update={"database_url": SecretStr(url)})) as client:
        yield client


def known(api: httpx.Client, repository: Path, url: str) -> dict[str, list[str]]:
    """Words that mean something to this service, by the parameter or field that takes them."""
    body = {"repo": str(repository), "head": "refactor", "questions": 10, "lanes": ["canary V0"]}
    done, cancelled = (api.post("/api/v1/runs", json=body | {"name": name}).json()["run_id"] for name in ("a", "b"))
    api.post(f"/api/v1/runs/{cancelled}/cancel", json={})
    finish(url, RunView.model_validate(api.get(f"/api/v1/runs/{done}").json()))
    search = {"repo": str(repository), "good": "main^", "bad": "refactor", "lane": "canary V1", "questions": 20}
    bisect = api.post("/api/v1/bisects", json=search).json()["bisect_id"]
    scores = [{"filter": "strict-match", "value": 0.58}]
    point = {"lane": "granite-4.0-tiny V1", "commit": "316b1bf", "questions": 1319, "scores": scores}
    figures = {"reported_by": "Ada", "figures": {"format": "driftline-figures-1", "points": [point]}}
    imported = api.post("/api/v1/imports/figures", json=figures).json()["imports"][0]["import_id"]
    unknown = str(uuid4())
    return {
        "run_id": [done, cancelled, unknown], "import_id": [imported, unknown], "bisect_id": [bisect, unknown],
        "path.name": ["canary V0", "granite-4.0-tiny V1"], "body.repo": [str(repository)],
    }  # fmt: skip


def finish(url: str, view: RunView) -> None:
    """Put a run where the reconciler would put it: done, with its view."""
    engine, now = make_engine(url), datetime.now(UTC)
    lanes = [lane.model_copy(update={"verdict": Verdict.EQUIVALENT}) for lane in view.lanes]
    judged = {"state": RunState.DONE, "verdict": Verdict.EQUIVALENT, "lanes": lanes, "finished_at": now}
    stored = view.model_copy(update=judged).model_dump(mode="json")
    with make_sessions(engine).begin() as session:
        values = {"state": RunState.DONE, "view": stored, "finished_at": now}
        session.execute(update(Run).where(Run.id == view.run_id).values(**values))
    engine.dispose()


def configuration(words: dict[str, list[str]]) -> str:
    """schemathesis.toml: take what is known four times of five, and no run that was made a moment ago, whose events never end."""
    lines = ['hooks = "fuzz_hooks.py"', "max-stream-events = 20"]
    lines += [
        f"[phases.{phase}.extra-data-sources]\nresponses = false" for phase in ("examples", "coverage", "fuzzing")
    ]
    for number, values in enumerate(words.values()):
        lines += [f"[dictionaries.d{number}]", f"values = {json.dumps(values)}"]
    lines.append("[parameters]")
    lines += [
        f'"{name}" = {{dictionary = "d{number}", probability = {1.0 if name == "body.repo" else 0.8}}}'
        for number, name in enumerate(words)
    ]
    return "\n".join(lines) + "\n"


def asked(folder: Path, api: httpx.Client, words: dict[str, list[str]]) -> "subprocess.CompletedProcess[str]":
    file = folder / "schemathesis.toml"
    file.write_text(configuration(words))
    (folder / "fuzz_hooks.py").write_text(HOOKS)
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(file), "run",
        str(api.base_url.join("/openapi.json")), "--header", f"Authorization:{api.headers['Authorization']}",
        "--checks", ",".join(CHECKS), "--phases", PHASES, "--max-examples", EXAMPLES,
        "--seed", SEED, "--generation-database", "none", "--continue-on-failure",
        "--request-timeout", "30", "--no-color", "--warnings", "off",
    ]  # fmt: skip
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=3600)


def test_every_answer_is_one_that_the_description_knows(
    api: httpx.Client, url: str, repository: Path, tmp_path: Path
) -> None:
    answer = asked(tmp_path, api, known(api, repository, url))
    assert answer.returncode == 0, answer.stdout[-20_000:] + answer.stderr[-5_000:]


@pytest.mark.parametrize("path", ["/api/v1/imports", "/api/v1/imports/figures"])
def test_what_was_reported_before_is_described_beside_what_is_new(client: httpx.Client, path: str) -> None:
    answers = client.get("/openapi.json").json()["paths"][path]["post"]["responses"]
    assert answers["200"]["content"] == answers["201"]["content"]
