"""The pages as the real application serves them, from real rows."""

import re
from html import unescape
from html.parser import HTMLParser
from uuid import uuid4

import pytest
from driftline.contracts.words import Arm, JobKind, RunState
from driftline_service.runs.cancellation import cancel, supersede
from sqlalchemy import text

HOSTILE = "<script>alert(1)</script> {{ 7*7 }} <img src=x onerror=alert(2)>"
NOBODY = "00000000-0000-4000-8000-000000000000"
VOID = {"meta", "link", "img", "br", "input"}


class Outline(HTMLParser):
    """Elements as a browser would see them; refuses what the pages must not have."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.headings, self.ids = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert not [name for name in given if name.startswith("on") or name == "style"], (tag, given)
        self.tags.append((tag, given))
        if "id" in given:
            self.ids.append(given["id"])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def outline(response):
    """The page, checked for what holds of every page."""
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';") and "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    found = Outline(response.text)
    assert len(set(found.ids)) == len(found.ids)
    assert found.headings[0] == 1 and all(b - a <= 1 for a, b in zip(found.headings, found.headings[1:], strict=False))
    tables = [tag for tag, _ in found.tags if tag == "table"]
    assert len(tables) == sum(tag == "caption" for tag, _ in found.tags)
    assert all("scope" in given for tag, given in found.tags if tag == "th")
    scripts = [given.get("src", "") for tag, given in found.tags if tag == "script"]
    assert [src.partition("?")[0] for src in scripts] == ["/static/live.js"]
    return found


def words(response):
    """What a reader reads."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.text)).split())


def test_the_empty_list_teaches_the_command(site, world):
    page = site.get("/")
    outline(page)
    assert "driftline submit --repo . --head HEAD --watch" in words(page)


def test_the_list_shows_progress_and_verdicts(site, world, store, rich_view):
    running, done = world.submit(name="still running"), store(rich_view)
    world.worker.work(world.messages()[0])
    page = site.get("/")
    found = outline(page)
    assert ("a", {"href": f"/runs/{done}"}) in found.tags and ("a", {"href": f"/runs/{running}"}) in found.tags
    assert "1 of 6 jobs" in words(page) and "✕ regressed" in words(page) and "✕ failed" in words(page)
    assert "still running" not in words(site.get("/?state=done"))
    assert 'http-equiv="refresh"' in page.text and 'data-state="active"' in site.get("/live").text
    assert 'http-equiv="refresh"' not in site.get("/?state=done").text


def test_older_runs_are_a_link_away(site, world):
    names = [f"run number {index:02}" for index in range(33)]
    for name in names:
        world.submit(name=name)
    first = site.get("/")
    older = re.search(r'rel="next" href="([^"]+)"', first.text)
    second = site.get(unescape(older.group(1)))
    assert [name for name in names if name in second.text] == names[:3]
    assert [name for name in names if name in first.text] == names[3:]


def test_a_judged_run_shows_everything(site, store, rich_view):
    run_id = store(rich_view)
    page = site.get(f"/runs/{run_id}")
    outline(page)
    read = words(page)
    for expected in (
        "canary V1 lost 10 points under strict-match", "accuracy ✕ regressed", "V0 (hf: whole prompt)",
        "? suspected, not confirmed",
        "-10.00 points", "[-12.00, -8.00]", "0.6000", "0.5000", "<0.0001", "3.10", "33", "-0.01000 nats/token",
        "driftline submit --measure-noise", "52 changed answers, side by side",
        "300 of 300 questions have a teacher-forced token moved", "48 of 300 responses differ in text",
        "96 → 128 ▲ more", "49152 → 32768 ▼ less", "1 of 2 compiled kernels changed", "✕ failed 11 0.0001 ✓ passed 2e-06 5.5e+06 ×",
        "output differs from the oracle from token 64 on", "strict-match 9",
    ):  # fmt: skip
        assert expected in read, expected
    assert "ssd_prefill packed 63" not in read  # passed: the failed ones are what one wants to see
    everything = words(site.get(f"/runs/{run_id}?cases=all"))
    assert everything.index("ssd_prefill chunked 129") < everything.index("ssd_prefill packed 63")
    for metric in ("exact_match", "logprob"):
        assert f'src="/runs/{run_id}/intervals.svg?metric={metric}"' in page.text
        drawn = site.get(f"/runs/{run_id}/intervals.svg", params={"metric": metric})
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert drawn.headers["content-security-policy"].startswith("default-src 'none'")
    assert site.get(f"/api/v1/runs/{run_id}/report").status_code == 200  # the page links it


def test_hostile_text_stays_text(site, store, hostile_view):
    run_id = store(hostile_view)
    for address in (f"/runs/{run_id}?cases=all", "/", f"/runs/{run_id}/samples"):
        page = site.get(address)
        found = outline(page)
        assert all(given.get("src", "/").startswith("/") for _, given in found.tags)
        assert "<script>alert" not in page.text
        assert "<script>alert(1)</script>" in unescape(page.text) and "{{ 7*7 }}" in page.text


def hostile_worker(world):
    """Head answers wrongly, with markup, where base is right."""
    worker = type(world.worker)(world.client, name="w1")
    say = worker.lines

    def lines(spec):
        told = say(spec)
        if spec.kind != JobKind.EVALUATE or spec.arm is Arm.BASE:
            return told
        for line in told:
            if line["type"] == "sample":
                line["response"] = f"so {HOSTILE} #### 41"
            if line["type"] == "scores":
                line["right"] = {name: [] for name in line["right"]}
                line["metrics"] = dict.fromkeys(line["metrics"], 0.0)
        return told

    worker.lines = lines
    return worker


def test_changed_answers_side_by_side(site, world):
    run_id = world.submit(lanes=(world.lane("a V1"), world.lane("b V0")))
    run = world.run_until_done(run_id, hostile_worker(world))
    assert run.state is RunState.DONE, run.failure_message
    page = site.get(f"/runs/{run_id}/samples", params={"lane": "b V0"})
    found = outline(page)
    assert sum(tag == "article" for tag, _ in found.tags) == 3
    read = words(page)
    assert "a V1 (3) b V0 (3)" in read and "strict-match ✕ lost" in read and "question" in read and "#### 42" in read
    assert "so first difference: <script>alert(1)</script> {{ 7*7 }} <img src=x onerror=alert(2)> #### 41" in read
    assert "so first difference: #### 42" in read
    assert "3 changed answers, side by side" in words(site.get(f"/runs/{run_id}"))


def test_a_running_run_shows_how_far_its_jobs_are(site, world):
    run_id = world.submit()
    claim = world.worker.claim(world.messages()[0])
    world.worker.report(claim, [{"type": "progress", "phase": "compile", "done": 2, "total": 9}])
    page = site.get(f"/runs/{run_id}")
    found = outline(page)
    assert ("progress", {"max": "9", "value": "2", "aria-label": "build base"}) in found.tags
    assert (
        "compile" in words(page)
        and "Kernel check … pending" in words(page)
        and "2 of 9" in words(page)
        and 'http-equiv="refresh"' in page.text
    )
    assert f'data-events="/api/v1/runs/{run_id}/events"' in page.text
    fragment = site.get(f"/runs/{run_id}/live")
    assert "<html" not in fragment.text and 'data-state="active"' in fragment.text
    assert site.get(f"/runs/{run_id}/intervals.svg").status_code == 404  # nothing to draw yet


@pytest.mark.parametrize("state", ["cancelled", "superseded", "failed"])
def test_a_run_without_a_verdict_says_why_and_what_to_do(site, world, state):
    run_id = world.submit(head=world.new_run().head)
    world.messages()
    with world.sessions.begin() as session:
        if state == "failed":
            session.execute(
                text("update runs set state = 'failed', failure_reason = 'source_gone', failure_message = :said, "
                     "finished_at = now() where id = :run"), {"run": run_id, "said": f"no commit {HOSTILE}"},
            )  # fmt: skip
        elif state == "cancelled":
            cancel(session, run_id, "wrong branch")
        else:
            supersede(session, run_id, uuid4())
    page = site.get(f"/runs/{run_id}")
    outline(page)
    told = {
        "cancelled": "Submit the same commits again", "superseded": "Look at the newer run",
        "failed": "source_gone no commit <script>",
    }  # fmt: skip
    assert told[state] in words(page) and 'http-equiv="refresh"' not in page.text
    if state != "superseded":
        assert f"--head {'d' * 40} --base" in words(page) or f"--head {'h' * 40}" in words(page)


@pytest.mark.parametrize(
    "address",
    ["/runs/nope", f"/runs/{NOBODY}", f"/runs/{NOBODY}/live", f"/runs/{NOBODY}/samples", "/runs/a/b/c", "/static/x.py",
     "/static/..%2ftemplates%2fbase.html"],
)  # fmt: skip
def test_unknown_addresses_are_pages(site, world, address):
    page = site.get(address)
    assert page.status_code == 404
    if address != "/static/..%2ftemplates%2fbase.html":  # two segments: no route of ours at all
        outline(page)
        assert "All runs" in words(page)


def test_an_unknown_lane_and_a_wrong_offset(site, world):
    run_id = world.submit()
    assert "no lane <b>" in words(site.get(f"/runs/{run_id}/samples", params={"lane": "<b>"}))
    wrong = site.get(f"/runs/{run_id}/samples", params={"offset": "x"})
    assert wrong.status_code == 422 and "offset" in words(wrong)


def test_assets_are_served_under_the_address_the_page_names(site, world):
    page = site.get("/").text
    for name, kind in (("style.css", "text/css"), ("live.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        address = re.search(rf'"(/static/{re.escape(name)}\?v=[0-9a-f]{{12}})"', page)
        answer = site.get(address.group(1))
        assert answer.status_code == 200 and answer.headers["content-type"].startswith(kind)
