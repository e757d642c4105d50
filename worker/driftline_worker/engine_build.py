"""Builds a commit of vLLM in full by the command that its environment names: a child like any other, whose result is kept."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from driftline.contracts.channel import Progress
from driftline.contracts.jobs import CommitSource
from driftline.contracts.lane import EngineEnvironment
from driftline.contracts.words import FailureKind, JobKind
from driftline.contracts.worker_api import ReportedLine
from driftline.git import Mirror
from driftline.git.engine_files import PACKAGE, build_files

from driftline_worker.channel import Expected
from driftline_worker.ending import Abandoned, Failed, Succeeded
from driftline_worker.limits import Limits
from driftline_worker.sandbox import CHILDREN, Program, Sandbox
from driftline_worker.scratch import Scratch, scratch_folder
from driftline_worker.settings import ChildSettings
from driftline_worker.stop_request import StopRequest
from driftline_worker.supervision import Sink, Supervision

PROGRAM = "build_engine.py"


class NotBuilt(Exception):  # noqa: N818 - what it is
    """A build that ended otherwise than well."""

    def __init__(self, ending: Failed | Abandoned) -> None:
        super().__init__(str(ending))
        self.ending = ending


@dataclass(frozen=True, slots=True)
class EngineBuild:
    """One commit's build, in the environment in which it will run."""

    source: CommitSource
    wanted: EngineEnvironment
    sandbox: Sandbox
    settings: ChildSettings
    threads: int
    sink: Sink
    stop: StopRequest

    def __call__(self, mirror: Mirror, folder: Path) -> None:
        """Build, and put the package into `folder`.

        Raises:
            NotBuilt: the child's own reason, a broken limit, or that it was stopped.
        """
        with scratch_folder(self.settings.scratch, "build-engine") as scratch:
            mirror.extract_paths(self.source.sha, build_files(mirror, self.source.sha), scratch.tree)
            out = scratch.own / "out"
            ending = self._run(scratch, out)
            if not isinstance(ending, Succeeded):
                raise NotBuilt(ending)
            if links := list(_links(out / PACKAGE)):
                message = f"the build left a link in its package, {links[0]}; the kept tree holds files only"
                raise NotBuilt(Failed(FailureKind.PERMANENT, "child_build_failed", message))
            shutil.move(out / PACKAGE, folder / PACKAGE)

    def _run(self, scratch: Scratch, out: Path) -> Succeeded | Failed | Abandoned:
        values = {
            "tree": str(scratch.tree), "out": str(out), "command": self.wanted.build, "threads": self.threads,
            "release": self.wanted.vllm, "seconds": self.wanted.build_seconds, "package": PACKAGE,
        }  # fmt: skip
        scratch.spec_file.write_text(json.dumps(values), encoding="utf-8")
        limits = replace(Limits.of(self.settings), total_seconds=self.wanted.build_seconds)
        program = Program(file=CHILDREN / PROGRAM, scratch=scratch, limits=limits, threads=self.threads)
        child = self.sandbox.start(program)
        supervision = Supervision(child, scratch, expected=Expected(JobKind.BUILD), limits=limits, stop=self.stop)
        return supervision.run(_ProgressOnly(self.sink))


@dataclass(frozen=True, slots=True)
class _ProgressOnly:
    """Of a build inside another job only how far it came is that job's."""

    sink: Sink

    def put(self, line: ReportedLine, size: int) -> None:
        if isinstance(line, Progress):
            self.sink.put(line, size)

    def full(self) -> bool:
        return self.sink.full()


def _links(package: Path) -> Iterator[Path]:
    """A link of a package that strangers' code made could show a later child what it may not read."""
    return (path for path in package.rglob("*") if path.is_symlink())
