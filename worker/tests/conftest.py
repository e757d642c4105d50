"""Real children behind real walls. A child here is a few lines of Python that misbehave in one way."""

import json
import socket
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import uvicorn
from driftline.contracts.channel import Hello
from driftline.contracts.jobs import BuildSpec, CheckSpec, CommitSource, EvaluateSpec, JobSpec
from driftline.contracts.lane import Lane, ModelSource, TaskSource
from driftline.contracts.words import Arm, Engine, Layout, Mode
from driftline.contracts.worker_api import Claim, ReportedLine
from driftline_worker import bubblewrap, sandbox
from driftline_worker.channel import Expected
from driftline_worker.ending import Ending
from driftline_worker.eval_environment import EvalEnvironment
from driftline_worker.limits import Limits
from driftline_worker.sandbox import Program, Sandbox
from driftline_worker.scratch import Scratch, scratch_folder
from driftline_worker.stop_request import StopRequest
from driftline_worker.supervision import Supervision
from git_repository import commit, git, start
from starlette.requests import Request
from starlette.responses import JSONResponse

KINDS = ["plain", *(["bubblewrap"] if bubblewrap.find() else [])]
"""The sandboxes this machine has. bubblewrap is optional by design, so its absence is no failure."""

LIMITS = Limits(
    memory_bytes=256 << 20, scratch_bytes=32 << 20, file_bytes=16 << 20, cpu_seconds=60, processes=40,
    start_seconds=20, import_seconds=20, silence_seconds=20, total_seconds=30, smallest_free_bytes=0,
)  # fmt: skip

PREAMBLE = """
import base64, json, os, signal, subprocess, sys, threading, time
FD = int(sys.argv[sys.argv.index("--channel-fd") + 1])
def raw(data):
    view = memoryview(data)
    while view: view = view[os.write(FD, view):]
def send(type, **fields): raw(json.dumps({"type": type} | fields).encode() + b"\\n")
def hello(): send("hello", protocol=1)
def case(name): send("case", name=name, kind="contract", backend="torch", passed=True, max_abs_err=0.0,
    max_rel_err=0.0, tolerance=1e-5)
def sample(doc_id, rank): send("sample", doc_id=doc_id, rank=rank, doc_hash="0"*64, prompt_hash="0"*64,
    target_hash="0"*64, question="q", target="t", response="r", finish_reason="stop",
    prompt_tokens=3, response_tokens=1)
"""


@dataclass
class Kept:
    """A sink that keeps what it is given, greetings apart."""

    lines: list[ReportedLine] = field(default_factory=list)
    greetings: int = 0
    blocked: bool = False

    def put(self, line: ReportedLine, size: int) -> None:
        assert size > 0
        if isinstance(line, Hello):
            self.greetings += 1
        else:
            self.lines.append(line)

    def full(self) -> bool:
        return self.blocked


@pytest.fixture(scope="session")
def make_sink() -> "Callable[[], Kept]":
    """A sink, for tests that start a bench themselves."""
    return Kept


@dataclass
class Service:
    """A service that is nothing but its four doors: what it was told, and what it answers."""

    spec: JobSpec
    lease_seconds: int = 60
    answers: dict[str, list[int]] = field(default_factory=dict)
    """door -> status codes to answer with before being well"""
    directive: dict[str, str] = field(default_factory=lambda: {"action": "continue"})
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    """(door, bearer token, body)"""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        door = request.url.path.rpartition("/")[2]
        body = await request.body()
        token = request.headers["authorization"].removeprefix("Bearer ")
        self.calls.append((door, token, json.loads(body) if body else None))
        status = self.answers[door].pop(0) if self.answers.get(door) else 200
        await JSONResponse(self._answer(door) if status == 200 else {"title": "no"}, status)(scope, receive, send)

    def _answer(self, door: str) -> Any:
        if door != "claim":
            return self.directive
        claim = Claim(
            attempt_id=uuid4(), attempt_token="attempt-token", lease_seconds=self.lease_seconds, spec=self.spec
        )
        return claim.model_dump(mode="json")

    def bodies(self, door: str) -> list[Any]:
        return [body for name, _, body in self.calls if name == door]


@contextmanager
def served(app: Any, port: int = 0) -> Iterator[int]:
    """The port on which a real HTTP server answers while the block runs."""
    listener = socket.create_server(("127.0.0.1", port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio leaves it out: 40 ms a reply
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


@pytest.fixture
def service(check_spec: CheckSpec, source: CommitSource) -> Service:
    """Has one check of the test's repository to give away."""
    return Service(check_spec.model_copy(update={"source": source}))


@pytest.fixture
def service_url(service: Service) -> Iterator[str]:
    with served(service) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(name="served")
def _served() -> Callable[..., AbstractContextManager[int]]:
    return served


@pytest.fixture
def children(tmp_path: Path) -> Callable[[str], Path]:
    """Write check.py, the child that a Bench will run, and give its folder."""

    def write(code: str) -> Path:
        folder = tmp_path / "children"
        folder.mkdir(exist_ok=True)
        (folder / "check.py").write_text(PREAMBLE + textwrap.dedent(code))
        return folder

    return write


@dataclass(frozen=True)
class Told:
    ending: Ending
    lines: list[ReportedLine]
    printed: str


RunCode = Callable[..., Told]


@pytest.fixture(scope="session")
def environment() -> EvalEnvironment:
    """This test's own interpreter: quicker to start than one with torch, and the walls are the same."""
    return EvalEnvironment.probe(Path(sys.executable), None)


@pytest.fixture(params=KINDS)
def any_sandbox(request: pytest.FixtureRequest, environment: EvalEnvironment) -> Sandbox:
    return sandbox.choose(environment, request.param)


@pytest.fixture(scope="session")
def usual_sandbox(environment: EvalEnvironment) -> Sandbox:
    return sandbox.choose(environment, "auto")


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    with scratch_folder(tmp_path / "scratch", "test") as made:
        yield made


@pytest.fixture
def run_code(any_sandbox: Sandbox, scratch: Scratch, tmp_path: Path, check_spec: CheckSpec) -> RunCode:
    """Run a child's code in each sandbox, under small limits; keywords change single limits."""

    def run(
        code: str,
        *,
        spec: JobSpec = check_spec,
        stop: StopRequest | None = None,
        sink: Kept | None = None,
        **limits: float,
    ) -> Told:
        program = program_of(code, tmp_path, scratch, **limits)
        scratch.spec_file.write_text("{}")
        child = any_sandbox.start(program)
        kept = sink or Kept()
        supervision = Supervision(
            child, scratch, expected=Expected.of(spec), limits=program.limits, stop=stop or StopRequest()
        )
        return Told(supervision.run(kept), kept.lines, str(child.tail))

    return run


def program_of(code: str, folder: Path, scratch: Scratch, **limits: float) -> Program:
    file = folder / "children" / "child.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(PREAMBLE + textwrap.dedent(code))
    return Program(file=file, scratch=scratch, limits=replace(LIMITS, **limits), threads=1)  # type: ignore[arg-type]


@pytest.fixture(name="program_of")
def _program_of() -> Callable[..., Program]:
    return program_of


@pytest.fixture(scope="session")
def preamble() -> str:
    return PREAMBLE


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose one commit has kernels, and files that must not be checked out."""
    folder = start(tmp_path / "repository")
    files = {"src/mamba2_varlen/__init__.py": "BACKENDS = ()\n", "sitecustomize.py": "raise SystemExit\n"}
    commit(folder, "Start", files)
    return folder


@pytest.fixture
def source(repository: Path) -> CommitSource:
    sha = git(repository, "rev-parse", "HEAD")
    return CommitSource(url=str(repository), sha=sha, layout=Layout.MAMBA2_VARLEN, kernel_path="src/mamba2_varlen")


NOWHERE = CommitSource(url="/nowhere", sha="0" * 40, layout=Layout.MAMBA2_VARLEN, kernel_path="src/mamba2_varlen")


@pytest.fixture
def check_spec() -> CheckSpec:
    return CheckSpec(job_id=uuid4(), run_id=uuid4(), arm=Arm.HEAD, source=NOWHERE)


@pytest.fixture
def build_spec() -> BuildSpec:
    return BuildSpec(job_id=uuid4(), run_id=uuid4(), arm=Arm.HEAD, source=NOWHERE)


@pytest.fixture
def lane() -> Lane:
    task = TaskSource(
        name="gsm8k_canary", yaml="canary/tasks/task.yaml", train="canary/data/train.jsonl",
        test="canary/data/test.jsonl", test_sha256="0" * 64, train_sha256="0" * 64, total_questions=10,
    )  # fmt: skip
    return Lane(
        name="canary V1", model=ModelSource(name="canary", path="canary/model"), engine=Engine.HF, mode=Mode.V1,
        backend="torch", task=task, questions=3,
    )  # fmt: skip


@pytest.fixture
def evaluate_spec(lane: Lane) -> EvaluateSpec:
    return EvaluateSpec(job_id=uuid4(), run_id=uuid4(), arm=Arm.HEAD, source=NOWHERE, lane=lane, doc_ids=[7, 2, 5])
