"""A pytest plugin that tells on a pipe of its own what each test comes to, as it comes: a process that dies has told the
rest. Standard library and pytest only; loaded by name (`-p driftline_lines`) into the process that runs foreign tests.

DRIFTLINE_TEST_PIPE is the descriptor; DRIFTLINE_TESTS_DONE a file of node ids, one JSON string a line, not to be run.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

MOST_CHARACTERS = 4_000


class Lines:
    """Writes one JSON object a line."""

    def __init__(self, pipe: int, done: frozenset[str]) -> None:
        self._pipe = pipe
        self._done = done
        self._phases: dict[str, list[Any]] = {}

    def tell(self, event: str, **fields: object) -> None:
        left = json.dumps({"event": event, **fields}).encode() + b"\n"
        while left:
            left = left[os.write(self._pipe, left) :]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.tell("collect_error", node=report.nodeid, message=_end(report.longreprtext))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        for item in items:
            self.tell("collected", node=item.nodeid)
        gone = [item for item in items if item.nodeid in self._done]
        if gone:
            items[:] = [item for item in items if item.nodeid not in self._done]
            config.hook.pytest_deselected(items=gone)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._phases[nodeid] = []
        self.tell("start", node=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._phases.setdefault(report.nodeid, []).append(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        reports = self._phases.pop(nodeid, [])
        outcome, message = _outcome(reports)
        seconds = sum(report.duration for report in reports)
        self.tell("finish", node=nodeid, outcome=outcome, seconds=seconds, message=message)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self.tell("end", status=int(exitstatus))


def pytest_configure(config: Any) -> None:
    done = Path(os.environ["DRIFTLINE_TESTS_DONE"]).read_text(encoding="utf-8").splitlines()
    pipe = int(os.environ["DRIFTLINE_TEST_PIPE"])
    config.pluginmanager.register(Lines(pipe, frozenset(map(json.loads, done))), "driftline-lines")


def _outcome(reports: list[Any]) -> tuple[str, str]:
    for report in reports:
        if report.failed:
            return ("failed" if report.when == "call" else "error"), _end(_reason(report))
    for report in reports:
        if report.skipped:
            return ("xfailed" if hasattr(report, "wasxfail") else "skipped"), _end(_skip_reason(report))
    expected = any(hasattr(report, "wasxfail") for report in reports)
    return ("xpassed" if expected else "passed"), ""


def _reason(report: Any) -> str:
    """The error's own line first, which is all that a table shows; then where."""
    crash = getattr(report.longrepr, "reprcrash", None)
    first = "" if crash is None else f"{crash.message}".partition("\n")[0] + "\n"
    return f"{first}{report.longreprtext}"


def _skip_reason(report: Any) -> str:
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail)
    longrepr = report.longrepr
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)


def _end(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    first, _, rest = text.partition("\n")
    return f"{first[:1000]}\n[...]\n{rest[-(MOST_CHARACTERS - 1020) :]}"
