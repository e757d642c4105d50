"""Chromium, driven without a driver: one tab, its complaints, and pictures of it."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_SECONDS = 20.0
OVERFLOWS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


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


@contextmanager
def chromium(folder: Path) -> Iterator[Tab]:
    """One tab of a browser of its own, whose profile is `folder`."""
    found = shutil.which("chromium")
    assert found, "the pages are tested in Chromium and there is none: apt-get install chromium"
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    command = [found, *FLAGS, f"--user-data-dir={folder}"]
    redirected = ["bash", "-c", f'exec "$@" 3<&{their_in} 4>&{their_out}', "bash", *command]
    process = subprocess.Popen(redirected, pass_fds=(their_in, their_out), stderr=subprocess.DEVNULL)
    os.close(their_in)
    os.close(their_out)
    opened = Tab(our_out, our_in)
    yield opened
    opened.close()
    process.kill()
    process.wait(10)
