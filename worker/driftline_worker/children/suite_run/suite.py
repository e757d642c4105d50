"""All tests of a repository, in as many pytest processes as it takes: a test that ends one is told, the rest go on."""

import importlib.util
import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from driftline_worker.children.kernel_child import Refusal
from driftline_worker.children.line_channel import Channel, clipped
from driftline_worker.children.suite_run.session import Session, run_session
from driftline_worker.children.suite_run.spec import SuiteSpec

PLUGIN: Final = Path(__file__).resolve().parents[1] / "pytest_plugin"

MOST_ENDS: Final = 20
"""Tests that may end, hang or flood their process; each costs a collection. After so many the rest is not run."""

MOST_TESTS: Final = 15_000
"""The service takes 20,000 lines of a job."""

LONGEST_NODE: Final = 500
PROGRESS_TESTS: Final = 10
NO_TESTS, USAGE, INTERNAL = 5, 4, 3
"""pytest's exit codes."""


@dataclass
class Suite:
    """Runs them. `done` are the node ids of which an outcome was sent, `raw_done` as pytest spells them."""

    spec: SuiteSpec
    channel: Channel
    folder: Path
    done: set[str] = field(default_factory=set)
    raw_done: set[str] = field(default_factory=set)
    total: int = 0

    def run(self) -> None:
        """Send one line a test. Raises Refusal if pytest is missing, does not start, or finds nothing."""
        if importlib.util.find_spec("pytest") is None:
            raise Refusal("permanent", "pytest_missing", f"{sys.executable} has no pytest; install it there")
        shutil.copytree(self.spec.tree, self.folder, symlinks=True)  # tests may write beside themselves
        ends = 0
        while True:
            before = len(self.done)
            session = self._session()
            self.total = max(self.total, len(session.collected))
            left = [node for node in session.collected if named(node) not in self.done]
            if session.status is not None and session.current is None and session.cut is None:
                self._refuse_unstarted(session)
                if not left or session.status in (0, 1, NO_TESTS):
                    return
            if session.current is not None:
                self._blame(session)
            elif len(self.done) == before:
                raise Refusal("permanent", "tests_do_not_start", self._ending(session))
            ends += 1
            left = [node for node in session.collected if named(node) not in self.done]
            if ends >= MOST_ENDS or len(self.done) >= MOST_TESTS:
                for node in left[: max(0, MOST_TESTS - len(self.done))]:
                    self._send(node, "not_run", 0.0, f"not run: {ends} tests ended their process before it")
                return

    def _session(self) -> Session:
        done = self.folder.with_name("done")
        done.write_text("".join(f"{json.dumps(node)}\n" for node in sorted(self.raw_done)), encoding="utf-8")
        folders = [self.folder / folder for folder in self.spec.import_from]
        environment = {**os.environ, "DRIFTLINE_TESTS_DONE": str(done)}
        first = [environment["PYTHONPATH"]] if "PYTHONPATH" in environment else []
        environment["PYTHONPATH"] = os.pathsep.join([*first, *map(str, folders), str(PLUGIN)])
        if self.spec.device == "cpu":
            environment["TRITON_INTERPRET"] = "1"
        command = [
            sys.executable, "-P", "-s", "-m", "pytest", "-p", "driftline_lines", "-p", "no:cacheprovider", "-s", "-q",
            "--continue-on-collection-errors", f"--rootdir={self.folder}", *self.spec.arguments, "--", *self.spec.there,
        ]  # fmt: skip
        return run_session(
            command, environment, self.folder, seconds=self.spec.seconds_per_test, tell=self._tell, beat=self._progress
        )

    def _tell(self, line: dict[str, Any]) -> None:
        self._send(
            str(line["node"]) or "collection", str(line["outcome"]), float(line["seconds"]), str(line["message"])
        )

    def _send(self, node: str, outcome: str, seconds: float, message: str) -> None:
        self.raw_done.add(node)
        if named(node) in self.done or len(self.done) >= MOST_TESTS:
            return
        self.done.add(named(node))
        self.channel.send(
            "kernel_test", node_id=named(node), outcome=outcome, seconds=max(0.0, seconds), message=clipped(message)
        )
        if len(self.done) % PROGRESS_TESTS == 0:
            self._progress()

    def _progress(self) -> None:
        self.channel.send("progress", phase="tests", done=len(self.done), total=max(self.total, len(self.done)))

    def _blame(self, session: Session) -> None:
        """The test that the process was at when it ended."""
        assert session.current is not None  # noqa: S101 - the caller looked
        outcome = session.cut or "crashed"
        told = {
            "crashed": f"the test ended its process ({session.how()})",
            "timed_out": f"the test was ended after {self.spec.seconds_per_test:g} s",
            "flooded": "the test printed without end, or wrote on the pipe of its results; it was ended",
        }[outcome]
        self._send(session.current, outcome, 0.0, f"{told}\n{session.said()}".rstrip())

    def _refuse_unstarted(self, session: Session) -> None:
        if session.status in (USAGE, INTERNAL) and not self.done:
            raise Refusal("permanent", "tests_do_not_start", self._ending(session))
        if session.status == NO_TESTS and not self.done:
            message = f"pytest finds no test in {', '.join(self.spec.there)}; is it another folder's, or deselected?"
            raise Refusal("unsupported", "no_tests", message)

    def _ending(self, session: Session) -> str:
        why = {"timed_out": "it hung", "flooded": "it printed without end", None: session.how()}[session.cut]
        said = session.said()
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
        return clipped(f"pytest ended before any test ({why}): {last}\n{said}")


def named(node: str) -> str:
    """A node id as long as a line may hold it, still its own."""
    if len(node) <= LONGEST_NODE:
        return node
    return f"{node[: LONGEST_NODE - 14]}… {sha256(node.encode('utf-8', 'replace')).hexdigest()[:12]}"
