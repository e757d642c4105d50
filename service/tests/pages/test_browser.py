"""The pages in Chromium: the policy forbids nothing they need, plots load, news arrive, and a phone is wide enough."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_SECONDS = 20.0


class Tab:
    """One tab, driven over DevTools' own pipe: no driver to install, and scripts run whatever the page's policy says."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = os.fdopen(commands, "wb", buffering=0), os.fdopen(answers, "rb", buffering=0)
        self._buffer, self._number, self._session = b"", 0, None
        self.complaints: list[str] = []
        self.loads = 0
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.do(f"{domain}.enable")

    def close(self) -> None:
        self._commands.close()
        self._answers.close()

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {} if self._session is None else {"sessionId": self._session}
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            read = self._answers.read(1 << 20)
            assert read, "chromium ended; is /usr/bin/chromium the browser of Debian's package `chromium`?"
            self._buffer += read
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        self._listen(message.get("method", ""), message.get("params", {}))
        return message

    def _listen(self, method: str, said: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{said['entry']['text']} {said['entry'].get('url', '')}")
        elif method == "Runtime.exceptionThrown" or (method == "Runtime.consoleAPICalled" and said["type"] == "error"):
            self.complaints.append(json.dumps(said))

    def show(self, url: str, *, width: int = 1240, dark: bool = False) -> None:
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])
        before = self.loads
        self.do("Page.navigate", url=url)
        while self.loads == before:
            self._next()

    def ask(self, expression: str) -> Any:
        return self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)["result"].get(
            "value"
        )

    def wait_for(self, expression: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.ask(expression):
            assert time.monotonic() < deadline, f"never true: {expression}\n{self.ask('document.body.innerText')}"
            time.sleep(0.1)

    def picture(self, path: Path) -> None:
        taken = self.do("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(taken["data"]))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go; set DRIFTLINE_TEST_PICTURES to look at them."""
    wanted = os.environ.get("DRIFTLINE_TEST_PICTURES")
    return Path(wanted) if wanted else tmp_path_factory.mktemp("pictures")


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    found = shutil.which("chromium")
    assert found, "the pages are tested in Chromium and there is none: apt-get install chromium"
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    command = [found, *FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]
    redirected = ["bash", "-c", f'exec "$@" 3<&{their_in} 4>&{their_out}', "bash", *command]
    process = subprocess.Popen(redirected, pass_fds=(their_in, their_out), stderr=subprocess.DEVNULL)
    os.close(their_in)
    os.close(their_out)
    opened = Tab(our_out, our_in)
    yield opened
    opened.close()
    process.kill()
    process.wait(10)


@pytest.fixture(autouse=True)
def no_complaints(tab: Tab) -> Iterator[None]:
    """Errors and warnings of the console, violations of the policy among them, fail every test."""
    tab.complaints.clear()
    yield
    assert tab.complaints == []


OVERFLOWS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
PLOTS_LOADED = "[...document.querySelectorAll('.plot img')].map((img) => img.complete && img.naturalWidth > 0)"


def test_the_run_page_is_whole(site, store, rich_view, tab, pictures):
    run_id = store(rich_view)
    for name, width, dark in (("run", 1240, False), ("run-dark", 1240, True), ("run-phone", 400, False)):
        tab.show(f"{site.base_url}/runs/{run_id}", width=width, dark=dark)
        assert tab.ask(PLOTS_LOADED) == [True, True]
        assert tab.ask("getComputedStyle(document.querySelector('.headline')).borderLeftWidth") == "8px"  # styled
        assert not tab.ask(OVERFLOWS)
        tab.picture(pictures / f"{name}.png")
        assert (pictures / f"{name}.png").stat().st_size > 20_000
    tab.show(f"{site.base_url}/runs/{run_id}/intervals.svg")  # by itself, under its own policy
    assert tab.ask("document.querySelectorAll('circle').length") >= 12


def test_hostile_text_runs_nothing(site, store, hostile_view, tab):
    tab.show(f"{site.base_url}/runs/{store(hostile_view)}?cases=all")
    assert tab.ask("document.querySelectorAll('script').length") == 1
    assert tab.ask("document.querySelectorAll('main img').length") == 2  # the plots and nothing else
    assert "<script>alert(1)</script>" in tab.ask("document.querySelector('h1').textContent")


def test_news_arrive_without_a_reload(site, world, tab, pictures):
    run_id = world.submit()
    messages = world.messages()
    tab.show(f"{site.base_url}/runs/{run_id}")
    tab.ask("document.body.dataset.kept = 'yes'")
    claim = world.worker.claim(messages.pop())
    world.worker.report(claim, [{"type": "progress", "phase": "compile", "done": 2, "total": 9}])
    tab.wait_for("document.querySelector('progress[max=\"9\"]')?.value === 2")
    tab.picture(pictures / "running.png")
    world.worker.report(claim, world.worker.lines(claim.spec), sequence=1)
    world.worker.finish(claim, batches=2)
    for message in messages:
        world.worker.work(message)
    world.run_until_done(run_id)
    tab.wait_for("document.querySelector('#live [data-state]').dataset.state === 'finished'")
    assert "accuracy" in tab.ask("document.querySelector('.headline').textContent")
    assert tab.ask("document.body.dataset.kept") == "yes"
    tab.wait_for("document.getElementById('live-note').textContent === 'This run has ended.'")


def test_the_list_and_the_answers_fit_a_phone(site, world, store, rich_view, tab, pictures):
    run_id = world.submit(name="chunk the state pass")
    worker = type(world.worker)(world.client, name="w1")
    say = worker.lines
    worker.lines = lambda spec: [line | _other_answer(spec, line) for line in say(spec)]
    world.run_until_done(run_id, worker)
    store(rich_view)
    world.submit(name="still to come")
    for name, address in (("list", "/"), ("answers", f"/runs/{run_id}/samples")):
        for width in (400, 1240):
            tab.show(f"{site.base_url}{address}", width=width)
            assert not tab.ask(OVERFLOWS)
            tab.picture(pictures / f"{name}-{width}.png")


def _other_answer(spec: Any, line: dict[str, Any]) -> dict[str, Any]:
    if line["type"] != "sample" or spec.arm == "base":
        return {}
    return {"response": f"She has {line['doc_id']} eggs and sells half of them, so #### 42"}
