"""What a child can see and reach. The walls are bubblewrap's; limits and the closed environment hold without it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from driftline.contracts.channel import Case
from driftline_worker import bubblewrap, sandbox
from driftline_worker.ending import Succeeded
from driftline_worker.eval_environment import EnvironmentBroken, EvalEnvironment
from driftline_worker.sandbox import Sandbox, SandboxMissing
from driftline_worker.scratch import Scratch

RunCode = Callable[..., "object"]

walled = pytest.mark.parametrize("any_sandbox", ["bubblewrap"] if bubblewrap.find() else [], indirect=True)


def names(told: object) -> list[str]:
    return [line.name for line in told.lines if isinstance(line, Case)]  # type: ignore[attr-defined]


def test_a_child_starts_in_an_empty_folder_with_an_environment_built_from_nothing(
    run_code: RunCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_WORKER_SERVICE_URL", "http://secret")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    told = run_code("""
        hello()
        case(f"files {os.listdir('.')}")
        case(f"leaked {[k for k, v in os.environ.items() if 'secret' in v or k in ('PYTHONPATH', 'HF_TOKEN')]}")
        case(f"path {'' in sys.path or os.getcwd() in sys.path}")
        case(f"home {os.listdir(os.environ['HOME'])}")
        open("mine", "w").write("x")
        open(os.path.join(os.environ["TMPDIR"], "mine"), "w").write("x")
        send("result", lines=4)
    """)
    assert isinstance(told.ending, Succeeded), told.ending
    assert names(told) == ["files []", "leaked []", "path False", "home []"]


@walled
def test_behind_the_wall_there_is_no_network_no_other_file_and_no_other_process(
    run_code: RunCode, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("token")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told = run_code(f"""
            import socket
            hello()
            def attempt(name, do):
                try: do()
                except OSError as error: case(name + " denied")
                else: case(name + " ALLOWED")
            attempt("network", lambda: socket.create_connection(("127.0.0.1", {port}), 2))
            attempt("names", lambda: socket.getaddrinfo("example.org", 443))
            attempt("file", lambda: open({str(secret)!r}).read())
            attempt("shadow", lambda: open("/etc/shadow").read())
            attempt("repository", lambda: os.listdir({str(Path.home() / ".ssh")!r}))
            attempt("write", lambda: open("/usr/x", "w"))
            attempt("given", lambda: open(sys.argv[sys.argv.index("--spec") + 1], "w"))
            attempt("code", lambda: open(__file__, "w"))
            attempt("kill", lambda: os.kill({os.getpid()}, 0))
            attempt("mount", lambda: os.chroot("/usr"))
            send("result", lines=10)
        """)
    assert isinstance(told.ending, Succeeded), told.ending
    assert [name for name in names(told) if not name.endswith(" denied")] == []
    assert len(names(told)) == 10


@walled
def test_the_child_runs_in_namespaces_of_its_own(run_code: RunCode) -> None:
    here = {kind: str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("user", "net", "pid", "ipc", "uts", "mnt")}
    told = run_code("""
        hello()
        for kind in ("user", "net", "pid", "ipc", "uts", "mnt"): case(kind + " " + os.readlink(f"/proc/self/ns/{kind}"))
        send("result", lines=6)
    """)
    found = dict(name.split(" ") for name in names(told))
    assert found.keys() == here.keys()
    assert all(found[kind] != here[kind] for kind in here)


@walled
def test_the_child_sees_the_processor_as_it_is(run_code: RunCode) -> None:
    """What torch reads to choose its code: a measurement must not depend on the sandbox."""
    possible = Path("/sys/devices/system/cpu/possible").read_text().strip()
    told = run_code("""
        hello(); case("cpu " + open("/sys/devices/system/cpu/possible").read().strip()); send("result", lines=1)
    """)
    assert names(told) == [f"cpu {possible}"]


def test_a_file_larger_than_allowed_cannot_be_written(run_code: RunCode) -> None:
    told = run_code("""
        hello()
        try:
            with open("large", "wb") as file: file.truncate(17 << 20)
        except OSError as error: case(f"refused {error.errno}")
        send("result", lines=1)
    """)
    assert names(told) == ["refused 27"]


NAP = f"6{os.getpid()}.25"
"""Seconds nobody else on this machine sleeps."""

GRANDCHILD = f"""
    hello()
    marker = sys.argv[sys.argv.index("--spec") + 1]
    for _ in range(2):  # one in a session of its own, and its child an orphan
        subprocess.Popen(["/bin/sh", "-c", "sleep {NAP} & sleep {NAP}"], start_new_session=True)
    time.sleep(0.3)
"""


def sleepers() -> int:
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            found += entry.name.isdigit() and NAP.encode() in (entry / "cmdline").read_bytes()
        except OSError:
            continue
    return found


@pytest.mark.parametrize("ending", ["send('result', lines=0)", "os.kill(os.getpid(), 9)", "time.sleep(600)"])
def test_nothing_a_child_started_outlives_it(run_code: RunCode, ending: str) -> None:
    run_code(GRANDCHILD + f"    {ending}\n", silence_seconds=1)
    assert sleepers() == 0


def test_a_child_dies_with_a_worker_that_is_killed(
    any_sandbox: Sandbox, scratch: Scratch, program_of: Callable[..., object], tmp_path: Path
) -> None:
    program_of(GRANDCHILD + "    time.sleep(600)\n", tmp_path, scratch)
    scratch.spec_file.write_text("{}")
    worker = f"""
import sys, time
from dataclasses import replace
from pathlib import Path
from driftline_worker import sandbox
from driftline_worker.eval_environment import EvalEnvironment
from driftline_worker.limits import Limits
from driftline_worker.scratch import Scratch
limits = Limits(memory_bytes=1 << 28, scratch_bytes=1 << 28, file_bytes=1 << 28, cpu_seconds=60, processes=40,
                start_seconds=20, import_seconds=20, silence_seconds=20, total_seconds=30)
box = sandbox.choose(EvalEnvironment.probe(Path(sys.executable), None), {any_sandbox.kind!r})
box.start(sandbox.Program(Path({str(tmp_path / "children" / "child.py")!r}), Scratch(Path({str(scratch.root)!r})),
                          limits, 1))
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-P", "-c", worker]) as process:
        assert within(15, lambda: sleepers() >= 2)
        process.kill()
    assert within(10, lambda: sleepers() == 0)


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_demanded_wall_that_is_missing_is_an_error(
    environment: EvalEnvironment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sandbox.choose(environment, "auto").kind == "plain"
    with pytest.raises(SandboxMissing, match="apt-get install bubblewrap"):
        sandbox.choose(environment, "bubblewrap")


def test_an_environment_that_does_not_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentBroken, match="make envs"):
        EvalEnvironment.probe(tmp_path / "python", None)


def test_the_environment_has_an_identity_that_follows_its_lock(tmp_path: Path) -> None:
    lock = tmp_path / "eval.lock"
    lock.write_text("torch==2.13.0\n")
    first = EvalEnvironment.probe(Path(sys.executable), lock)
    assert first == EvalEnvironment.probe(Path(sys.executable), lock)
    lock.write_text("torch==2.13.1\n")
    assert first.identity != EvalEnvironment.probe(Path(sys.executable), lock).identity
