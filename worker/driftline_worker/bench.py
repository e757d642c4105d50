"""Runs one job's child on this machine: checkout, spec, sandbox, supervision. Used with a service and without one."""

import errno
import os
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, TypeGuard

import structlog
from driftline.contracts.jobs import EvaluateSpec, JobSpec, SuiteSpec
from driftline.contracts.words import Engine, FailureKind, Layout
from driftline.git.mirror_cache import mirror_in_use

from driftline_worker.channel import Expected
from driftline_worker.checkout import check_out, check_out_engine, check_out_suite
from driftline_worker.child_spec import child_spec
from driftline_worker.ending import CannotRun, Ending, Failed, clipped
from driftline_worker.engine_build import EngineBuild, NotBuilt
from driftline_worker.engine_environment import EngineEnvironment, named_environment
from driftline_worker.engine_tree import EngineTree, engine_tree
from driftline_worker.gpu_memory import read_memory, visible, wait_until_back
from driftline_worker.limits import Limits
from driftline_worker.readiness import refuse_unready
from driftline_worker.sandbox import CHILDREN, Program, Sandbox
from driftline_worker.scratch import Scratch, scratch_folder
from driftline_worker.settings import ChildSettings
from driftline_worker.stop_request import StopRequest
from driftline_worker.supervision import Sink, Supervision

VLLM_PROGRAM = "evaluate_vllm.py"
_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("driftline.worker")

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class Bench:
    """`children` is the folder of the programs, one per kind of job."""

    settings: ChildSettings
    sandbox: Sandbox
    concurrency: int = 1
    children: Path = CHILDREN

    @property
    def threads(self) -> int:
        """Threads of one child: its share of the cores this process may use."""
        return self.settings.threads or max(1, len(os.sched_getaffinity(0)) // self.concurrency)

    def run(self, spec: JobSpec, sink: Sink, stop: StopRequest) -> Ending:
        """Do the job; whatever goes wrong with it is an ending."""
        try:
            with scratch_folder(self.settings.scratch, spec.kind) as scratch:
                _check_disk(scratch, Limits.of(self.settings))
                return self._run_in(scratch, spec, sink, stop)
        except NotBuilt as error:
            return error.ending
        except CannotRun as error:
            return Failed(error.kind, error.reason, clipped(str(error)))
        except OSError as error:
            if error.errno in DISK_FULL:
                message = f"the disk of {self.settings.scratch} is full; free some space"
                return Failed(FailureKind.TRANSIENT, "disk_full", message)
            raise

    def _run_in(self, scratch: Scratch, spec: JobSpec, sink: Sink, stop: StopRequest) -> Ending:
        engine = _engine(spec, self.settings)
        sandbox = self.sandbox if engine is None else replace(self.sandbox, environment=engine.found)
        with ExitStack() as kept:
            with mirror_in_use(self.settings.mirrors, spec.source.url):
                if engine is not None and _on_vllm(spec) and spec.source.layout is Layout.VLLM:
                    tree = kept.enter_context(self._engine_tree(spec, engine, sandbox, sink, stop))
                else:
                    tree = None
                    self._check_out(scratch, spec)
            return self._run_child(scratch, spec, _Engine(engine, tree), sandbox, sink, stop)

    def _run_child(
        self, scratch: Scratch, spec: JobSpec, engine: "_Engine", sandbox: Sandbox, sink: Sink, stop: StopRequest
    ) -> Ending:
        settings = self.settings
        import_dir = scratch.tree if isinstance(spec, SuiteSpec) else engine.folder or scratch.import_dir
        told = child_spec(spec, import_dir=import_dir, threads=self.threads, settings=settings, engine=engine.told)
        scratch.spec_file.write_text(told.text, encoding="utf-8")
        limits = Limits.of(settings)
        gpu = settings.gpu_type is not None and (not isinstance(spec, EvaluateSpec) or spec.lane.gpu_type is not None)
        program = Program(
            file=self.children / (VLLM_PROGRAM if _on_vllm(spec) else f"{spec.kind}.py"), scratch=scratch, limits=limits,
            threads=self.threads, readable=(*told.readable, *engine.folders), gpu=gpu,
            environment=told.environment | (visible(settings.gpu) if gpu else {}),
        )  # fmt: skip
        before = read_memory(settings.gpu) if gpu else []
        child = sandbox.start(program)
        supervision = Supervision(child, scratch, expected=Expected.of(spec), limits=limits, stop=stop)
        try:
            return supervision.run(sink)
        finally:  # every process of it is gone now; the driver may need a moment longer
            if held := wait_until_back(before, lambda: read_memory(settings.gpu)):
                _log.warning("gpu memory is not back", mib=held)

    def _engine_tree(
        self, spec: EvaluateSpec, engine: EngineEnvironment, sandbox: Sandbox, sink: Sink, stop: StopRequest
    ) -> AbstractContextManager[EngineTree]:
        """The whole package of a commit of vLLM, checked out or built."""
        wanted, settings = spec.lane.runs_in, self.settings
        assert wanted is not None  # noqa: S101 - or there would be no environment
        build = EngineBuild(spec.source, wanted, sandbox, settings, self.threads, sink, stop)
        return engine_tree(spec.source, wanted, settings=settings, identity=engine.found.identity, build=build)

    def _check_out(self, scratch: Scratch, spec: JobSpec) -> None:
        """The code under test: the kernels alone, or what a repository's own tests need."""
        settings, source = self.settings, spec.source
        places: _Places = {
            "mirrors": settings.mirrors, "import_dir": scratch.import_dir,
            "allow_local": settings.allow_local_repositories,
        }  # fmt: skip
        if isinstance(spec, SuiteSpec):
            mirrors, local = settings.mirrors, settings.allow_local_repositories
            check_out_suite(source, spec.suite, mirrors=mirrors, tree=scratch.tree, allow_local=local)
            if spec.suite.runs_in is not None and source.layout is Layout.VLLM:
                check_out_engine(source, spec.suite.runs_in.vllm, **places)
        else:
            check_out(source, **places)


@dataclass(frozen=True, slots=True)
class _Engine:
    """What a child's engine is made of: the environment, and the commit's own vLLM where it brings one."""

    environment: EngineEnvironment | None
    tree: EngineTree | None

    @property
    def told(self) -> dict[str, object] | None:
        built = {"built": self.tree is not None and self.tree.built}
        return None if self.environment is None else self.environment.told | built

    @property
    def folder(self) -> Path | None:
        return None if self.tree is None else self.tree.folder

    @property
    def folders(self) -> tuple[Path, ...]:
        return () if self.tree is None else (self.tree.folder,)


def _check_disk(scratch: Scratch, limits: Limits) -> None:
    """A child that starts on a full disk dies of something else, and its commit is blamed."""
    free = scratch.free_bytes()
    if free < limits.smallest_free_bytes:
        raise CannotRun(FailureKind.TRANSIENT, "disk_full", limits.too_little_left(free))


class _Places(TypedDict):
    mirrors: Path
    import_dir: Path
    allow_local: bool


def _engine(spec: JobSpec, settings: ChildSettings) -> EngineEnvironment | None:
    """The vLLM environment that a lane or the tests of a repository name, once all that the job needs is there."""
    if isinstance(spec, SuiteSpec):
        wanted = spec.suite.runs_in
        return None if wanted is None else named_environment(wanted, "the repository's own tests", settings)
    return refuse_unready(spec.lane, settings) if isinstance(spec, EvaluateSpec) else None


def _on_vllm(spec: JobSpec) -> TypeGuard[EvaluateSpec]:
    return isinstance(spec, EvaluateSpec) and spec.lane.engine is Engine.VLLM
