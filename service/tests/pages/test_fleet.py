"""The page of workers and queues."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

from driftline_service.database.tables import Worker
from sqlalchemy import update


def _words(response):
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.text)).split())


def test_an_empty_service_says_how_to_get_a_worker(site, world):
    words = _words(site.get("/workers"))
    assert "No worker was ever heard of. driftline serve starts one here" in words
    assert "Nothing waits." in words


def test_a_busy_worker_shows_its_job_and_how_far_it_is(site, world):
    run_id = world.submit()
    claim = world.worker.claim(world.messages()[0])
    world.worker.report(claim, [{"type": "progress", "phase": "compile", "done": 2, "total": 9}])
    page = site.get("/workers")
    assert f'href="/runs/{run_id}"' in page.text
    assert re.search(r"w1 h CPU build base compile 2 of 9, for \d+ s plain env-1", _words(page))
    assert re.search(r"Queue Waiting Running First waits for cpu \d+ 1 \d+ s", _words(page))


def test_a_worker_that_vanished_is_told_from_an_idle_one(site, world):
    world.submit()
    world.worker.fail(world.worker.claim(world.messages()[0]), "permanent")
    assert "idle" in _words(site.get("/workers"))
    with world.sessions.begin() as session:
        session.execute(update(Worker).values(last_seen=datetime.now(UTC) - timedelta(hours=2)))
    assert "unheard of" in _words(site.get("/workers"))
    with world.sessions.begin() as session:
        session.execute(update(Worker).values(last_seen=datetime.now(UTC) - timedelta(days=40)))
    assert "No worker was ever heard of" in _words(site.get("/workers"))
