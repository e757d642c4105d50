"""The real application on a real port over the core tests' database, and one judged view that has everything in it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import uvicorn
from driftline.contracts.report import RunView
from driftline.contracts.words import RunState
from driftline_service import logs
from driftline_service.app import create_app
from driftline_service.database.tables import Run
from driftline_service.settings import Settings
from scripted.tab import Tab, chromium
from sqlalchemy import update

PROJECT = Path(__file__).parents[3]
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}"
NOW = datetime(2026, 12, 2, 5, 30, tzinfo=UTC)


@pytest.fixture(scope="session")
def site(core_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A reader without a token."""
    folder = tmp_path_factory.mktemp("pages")
    fields: dict[str, Any] = {
        "database_url": core_url, "broker_url": f"filesystem://{folder}/broker", "data_dir": folder,
        "config_path": PROJECT / "driftline.toml", "assets_root": PROJECT, "dashboards_dir": PROJECT / "dashboards",
    }  # fmt: skip
    logs.configure(format="json", level="WARNING")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as in ../conftest.py
        server = uvicorn.Server(uvicorn.Config(create_app(Settings(**fields)), log_config=None, lifespan="on"))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the application did not start"
            time.sleep(0.01)
        with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=20) as client:
            yield client
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go; set DRIFTLINE_TEST_PICTURES to look at them."""
    wanted = os.environ.get("DRIFTLINE_TEST_PICTURES")
    return Path(wanted) if wanted else tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture
def tab(browser: Tab) -> Iterator[Tab]:
    """The tab: errors and warnings of the console, violations of the policy among them, fail every test."""
    browser.complaints.clear()
    yield browser
    browser.show("about:blank")  # else what a page still loads is not there any more in the next test's empty database
    assert browser.complaints == []


@pytest.fixture
def store(world: Any) -> Callable[..., UUID]:
    """Puts a judged view where the reconciler would: a run that is done."""

    def store_view(view: RunView) -> UUID:
        run_id: UUID = world.submit(name=view.name)
        stored = view.model_copy(update={"run_id": run_id}).model_dump(mode="json")
        values = {"state": RunState.DONE, "view": stored, "finished_at": datetime.now(UTC)}
        with world.sessions.begin() as session:
            session.execute(update(Run).where(Run.id == run_id).values(**values))
        return run_id

    return store_view


@pytest.fixture
def rich_view() -> RunView:
    """A regression in one lane of two, a failed kernel check and changed kernels: every table has lines."""
    lanes = [_lane("canary V0", "V0 (hf: whole prompt)", 0.0), _lane("canary V1", "V1 (hf: chunks of 64)", -0.1)]
    return RunView.model_validate(_run() | {"lanes": lanes})


@pytest.fixture
def hostile_view(rich_view: RunView) -> RunView:
    """The same, with markup and template code in every text that somebody else wrote."""
    lane = rich_view.lanes[1]
    lane = lane.model_copy(update={
        "reasons": [HOSTILE], "task": HOSTILE,
        "health": [arm.model_copy(update={"failure": HOSTILE, "invalid": {HOSTILE: 2}}) for arm in lane.health],
        "comparisons": [cell.model_copy(update={"filter": HOSTILE}) for cell in lane.comparisons],
    })  # fmt: skip
    check = rich_view.kernel_check
    cases = [case.model_copy(update={"name": HOSTILE, "message": HOSTILE, "config": HOSTILE}) for case in check.cases]
    return rich_view.model_copy(update={
        "name": HOSTILE, "repository": f"https://example.org/{HOSTILE}", "head_subject": HOSTILE, "lanes": [lane],
        "kernel_check": check.model_copy(update={"cases": cases, "reason": HOSTILE}),
        "builds": [build.model_copy(update={"kernel": HOSTILE, "head_error": HOSTILE}) for build in rich_view.builds],
        "headline": rich_view.headline.model_copy(update={"sentence": HOSTILE}),
    })  # fmt: skip


def _run() -> dict[str, Any]:
    case = {"kind": "contract", "backend": "torch", "tolerance": 1e-4, "base_passed": True, "config": "", "message": ""}
    fine = case | {
        "name": "ssd_prefill packed 63",
        "head_passed": True,
        "base_error": 1e-6,
        "head_error": 1e-6,
        "ratio": 1.0,
    }
    bad = case | {
        "name": "ssd_prefill chunked 129", "head_passed": False, "base_error": 2e-6, "head_error": 11.0, "ratio": 5.5e6,
        "config": "chunk 64, float32", "message": "output differs from the oracle from token 64 on",
    }  # fmt: skip
    kernel = {"config": "block 64", "arch": "sm_90", "base_spills": 0, "base_shared_memory": 49152}
    return {
        "run_id": uuid4(), "name": "speed up the state pass", "repository": "https://example.org/kernels.git",
        "base": "b" * 40, "head": "d" * 40, "base_subject": "Bound the chunk index",
        "head_subject": "Fuse decay into the state pass",
        "state": "done", "created_at": NOW, "finished_at": NOW + timedelta(minutes=6, seconds=12), "margin": 0.025,
        "method_version": "1", "inputs_hash": "e" * 64, "verdict": "regressed",
        "headline": {"color": "red", "sentence": "canary V1 lost 10 points under strict-match; the kernel check failed."},
        "kernel_check": {
            "result": "failed", "reason": "1 of 2 contract cases fails on head and passes on base", "device": "cpu",
            "failed_cases": [bad["name"]], "cases": [fine, bad],
        },
        "builds": [
            kernel | {"kernel": "chunk_cumsum",
                      "base_registers": 40, "head_registers": 40, "head_spills": 0, "head_shared_memory": 49152},
            kernel | {"kernel": "state_passing",
                      "base_registers": 96, "head_registers": 128, "head_spills": 64, "head_shared_memory": 32768},
        ],
        "jobs": [
            {"job_id": uuid4(), "kind": "evaluate", "arm": "head", "lane": "canary V1", "state": "succeeded", "attempts": 2,
             "started_at": NOW, "finished_at": NOW + timedelta(seconds=90)},
        ],
        "events": [],
    }  # fmt: skip


def _lane(name: str, mode_label: str, drop: float) -> dict[str, Any]:
    verdict = "regressed" if drop else "equivalent"
    cell = {"task": "gsm8k_canary", "n": 300, "p_value": 1e-6 if drop else 1.0, "p_adjusted": 6e-6 if drop else 1.0}
    exact = cell | {
        "metric": "exact_match", "base": 0.6, "head": 0.6 + drop, "lost": 33, "gained": 3, "interval": (drop - 0.02, drop + 0.02),
        "smallest_visible_drop": 0.031, "verdict": verdict,
    }  # fmt: skip
    logprob = cell | {
        "metric": "logprob", "filter": "teacher-forced", "base": -0.4, "head": -0.4 + drop / 10, "lost": None, "gained": None,
        "interval": (drop / 10 - 0.001, drop / 10 + 0.001), "smallest_visible_drop": 0.0011, "verdict": verdict,
    }  # fmt: skip
    health = {
        "questions": 300,
        "missing": 0,
        "duplicates": 0,
        "left_truncated": 0,
        "mean_mismatch": False,
        "length_stops": 4,
        "attempts": 1,
    }
    score = {
        "task": "gsm8k_canary",
        "version": "3.0",
        "filter": "strict-match",
        "n_shot": 3,
        "metric": "exact_match",
        "stderr": 0.028,
    }
    return {
        "name": name, "model": "canary", "engine": "hf", "mode": name[-2:], "mode_label": mode_label, "backend": "torch",
        "task": "gsm8k_canary", "verdict": verdict, "confirmed": "no" if drop else "not_needed", "unstable": False,
        "reasons": [f"strict-match: {100 * drop:+.1f} points, 33 lost and 3 gained"] if drop else ["wholly inside the margin"],
        "comparisons": [exact | {"filter": "strict-match"}, exact | {"filter": "flexible-extract"}, logprob],
        "scores": [score | {"arm": "base", "value": 0.6}, score | {"arm": "head", "value": 0.6 + drop}],
        "health": [health | {"arm": "base", "invalid": {"strict-match": 3}},
                   health | {"arm": "head", "invalid": {"strict-match": 9}}],
        "divergence": {"questions": 300, "moved_questions": 300 if drop else 0, "largest_move": 3.2 if drop else 1e-6,
                       "text_diverged": 48 if drop else 0, "first_divergent_token": 65 if drop else None},
        "noise": None, "key_differences": [], "changed_answers": 52 if drop else 0,
    }  # fmt: skip
