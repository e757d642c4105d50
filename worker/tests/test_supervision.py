"""Every way in which a child can break the rules, in each sandbox."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from driftline.contracts.channel import Case, Progress, Sample
from driftline.contracts.jobs import EvaluateSpec
from driftline.contracts.words import FailureKind
from driftline_worker.ending import Abandoned, Failed, Succeeded
from driftline_worker.stop_request import StopRequest

RunCode = Callable[..., Any]
TRANSIENT, PERMANENT = FailureKind.TRANSIENT, FailureKind.PERMANENT


def failure(told: Any) -> tuple[FailureKind, str]:
    assert isinstance(told.ending, Failed), told.ending
    return told.ending.kind, told.ending.reason


def test_a_child_that_works(run_code: RunCode) -> None:
    told = run_code("""
        print("noise on stdout", flush=True)
        hello(); send("progress", phase="check", done=0, total=1); case("a"); send("result", lines=1)
    """)
    assert isinstance(told.ending, Succeeded), told.ending
    assert told.ending.dropped == 0
    assert told.ending.seconds > 0
    assert [type(line) for line in told.lines] == [Progress, Case]
    assert "noise" in told.printed


def test_an_engines_error_that_its_child_did_not_outlive_is_named(run_code: RunCode) -> None:
    line = "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer"
    told = run_code(f"hello(); print({line!r}, flush=True); os.kill(os.getpid(), signal.SIGKILL)")
    assert failure(told) == (PERMANENT, "weights_broken")
    assert "SafetensorError" in told.ending.message.splitlines()[0]


def test_each_phase_of_an_engine_has_a_patience_of_its_own(run_code: RunCode) -> None:
    waits = """
        hello(); send("progress", phase="start_engine", done=0, total=1); time.sleep(1.5)
        send("progress", phase="{phase}", done=0, total=1); time.sleep(30)
    """
    limits = {"silence_seconds": 0.6, "engine_start_seconds": 5, "first_response_seconds": 1.0}
    first = run_code(waits.format(phase="first_response"), **limits)
    assert failure(first) == (TRANSIENT, "child_silent")
    assert "no line for 1 s" in first.ending.message
    later = run_code(waits.format(phase="generate"), **limits)
    assert "no line for 0.6 s" in later.ending.message
    start = run_code(waits.format(phase="generate"), **(limits | {"engine_start_seconds": 0.8}))
    assert "no line for 0.8 s" in start.ending.message
    assert "phase start_engine" in start.ending.message


def test_a_childs_own_failure_is_passed_on(run_code: RunCode) -> None:
    told = run_code('hello(); send("failure", kind="unsupported", reason="engine_gone", message="no V0 here")')
    assert failure(told) == (FailureKind.UNSUPPORTED, "engine_gone")
    assert told.ending.message == "no V0 here"


def test_a_line_in_pieces_is_one_line(run_code: RunCode) -> None:
    told = run_code("""
        hello()
        line = json.dumps({"type": "progress", "phase": "load", "done": 1, "total": 2}).encode() + b"\\n"
        for byte in line: raw(bytes([byte])); time.sleep(0.001)
        send("result", lines=0)
    """)
    assert told.lines == [Progress(phase="load", done=1, total=2)]


@pytest.mark.parametrize(
    ("end", "told_how"),
    [
        ("raise ValueError('kernel broke')", "exit code 1"),
        ("sys.exit(3)", "exit code 3"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "ran out of memory"),
        ("os._exit(0)", "exit code 0"),
    ],
)
def test_a_child_that_dies_is_told_with_how_and_what_it_said(run_code: RunCode, end: str, told_how: str) -> None:
    told = run_code(f'hello()\nprint("last words", flush=True)\n{end}')
    assert failure(told) == (TRANSIENT, "child_died")
    assert told_how in told.ending.message
    assert "last words" in told.ending.message


def test_a_child_that_never_starts_to_talk(run_code: RunCode) -> None:
    assert failure(run_code("time.sleep(60)", start_seconds=0.7)) == (TRANSIENT, "child_silent")


def test_a_child_that_hangs(run_code: RunCode) -> None:
    told = run_code(
        "hello(); case('a'); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)", silence_seconds=0.7
    )
    assert failure(told) == (TRANSIENT, "child_silent")
    assert "no line for 0.7 s; it said hello and nothing since" in told.ending.message
    assert len(told.lines) == 1
    assert told.ending.seconds < 15


def test_an_import_that_hangs_has_a_limit_of_its_own(run_code: RunCode) -> None:
    told = run_code("hello(); send('progress', phase='import', done=0, total=1); time.sleep(60)", import_seconds=0.7)
    assert failure(told) == (TRANSIENT, "child_silent")
    assert "no line for 0.7 s; it was last heard in phase import, at 0 of 1" in told.ending.message


@pytest.mark.parametrize("reason", ["worker_stopped", "disk_full", "git_failed", "child_silent"])
def test_a_child_cannot_speak_for_its_worker(run_code: RunCode, reason: str) -> None:
    """The service would try again without end, or blame the machine."""
    told = run_code(f'hello(); send("failure", kind="transient", reason="{reason}", message="honestly")')
    assert failure(told) == (TRANSIENT, f"child_{reason}")


def test_noise_does_not_count_as_talk(run_code: RunCode) -> None:
    told = run_code("hello()\nfor _ in range(15): raw(b'x\\n'); time.sleep(0.2)", silence_seconds=0.7)
    assert failure(told) == (TRANSIENT, "child_silent")


def test_a_child_that_takes_too_long(run_code: RunCode) -> None:
    told = run_code(
        "hello()\nwhile True: send('progress', phase='load', done=0, total=1); time.sleep(0.05)", total_seconds=1.2
    )
    assert failure(told) == (TRANSIENT, "child_too_slow")


@pytest.mark.parametrize(
    "flood",
    [
        "raw(b'x' * (2 << 20))",  # one endless line
        "while True: case('x' * 150)",  # more lines than any check has: all but one are repeats
        "while True: send('progress', phase='p', done=1, total=2)",
        "while True: raw(b'{}' * 60000 + b'\\n')",
    ],
)
def test_a_child_that_floods_its_pipe(run_code: RunCode, flood: str) -> None:
    kind, reason = failure(run_code(f"hello()\n{flood}"))
    assert kind is PERMANENT
    assert reason in ("flooded_channel", "garbage_output")


def test_a_child_that_floods_its_output_is_let_be(run_code: RunCode) -> None:
    told = run_code("hello(); sys.stdout.write('y' * (8 << 20)); sys.stdout.flush(); send('result', lines=0)")
    assert isinstance(told.ending, Succeeded), told.ending
    assert len(told.printed) < 20_000


def test_a_child_that_prints_without_end(run_code: RunCode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driftline_worker.supervision.MOST_OUTPUT_BYTES", 4 << 20)
    told = run_code("hello()\nwhile True: sys.stdout.write('y' * 65536)")
    assert failure(told) == (PERMANENT, "flooded_output")
    assert "printed more than 4 MB" in told.ending.message


def test_a_little_garbage_is_dropped_and_counted(run_code: RunCode) -> None:
    told = run_code("""
        hello()
        for junk in (b"not json", b"[]", b'{"type":"nonsense"}', b"\\xff\\xfe\\x00", b"", b'{"type":"case"}', b"null"):
            raw(junk + b"\\n")
        case("a"); send("result", lines=1)
    """)
    assert isinstance(told.ending, Succeeded), told.ending
    assert told.ending.dropped == 7
    assert len(told.lines) == 1


def test_much_garbage_fails_the_attempt(run_code: RunCode) -> None:
    told = run_code("hello()\nfor i in range(30): raw(os.urandom(20).replace(b'\\n', b'') + b'\\n')\ntime.sleep(60)")
    assert failure(told) == (PERMANENT, "garbage_output")


def test_forged_lines_are_dropped_and_spoil_nothing(run_code: RunCode, evaluate_spec: EvaluateSpec) -> None:
    told = run_code(
        """
        sample(7, 0)              # before hello
        hello(); hello()          # a second hello
        sample(7, 0)              # right: the first question asked
        sample(7, 0)              # again
        sample(99, 0)             # never asked
        sample(2, 2)              # not its place
        case("of another job")
        send("kernel_build", kernel="k", config="c", arch="sm_90", compiled=True)
        sample(2, 1)              # right
        send("sample", doc_id=5)  # incomplete
        sample(5, 2)              # right
        send("result", lines=3)
        sample(5, 2)              # after the end
        """,
        spec=evaluate_spec,
    )
    assert isinstance(told.ending, Succeeded), told.ending
    assert [(line.doc_id, line.rank) for line in told.lines if isinstance(line, Sample)] == [(7, 0), (2, 1), (5, 2)]
    assert told.ending.dropped >= 8


def test_results_that_did_not_arrive_are_missed(run_code: RunCode) -> None:
    told = run_code("hello(); case('a'); case('a'); send('result', lines=2)")
    assert failure(told) == (TRANSIENT, "lines_lost")
    assert "a second case a" in told.ending.message


def test_a_child_that_eats_memory(run_code: RunCode) -> None:
    told = run_code("hello()\nkept = [bytearray(b'x') * (8 << 20) for _ in range(60)]\ntime.sleep(60)")
    assert failure(told) == (TRANSIENT, "out_of_memory")
    assert "256 MB are allowed" in told.ending.message


def test_memory_of_its_children_counts(run_code: RunCode) -> None:
    eater = "import time; x = bytearray(b'x') * (100 << 20); time.sleep(60)"
    told = run_code(f"hello()\nfor _ in range(3): subprocess.Popen([sys.executable, '-c', {eater!r}])\ntime.sleep(60)")
    assert failure(told) == (TRANSIENT, "out_of_memory")


def test_memory_that_forked_processes_share_counts_once(run_code: RunCode) -> None:
    """Limit 256 MB: 100 MB in one process, shared with four more."""
    told = run_code("""
        hello(); x = bytearray(b'x') * (100 << 20)
        for _ in range(4):
            if os.fork() == 0: time.sleep(60)
        time.sleep(1.2); send('result', lines=0)
    """)
    assert isinstance(told.ending, Succeeded), told.ending


def test_a_file_that_grows_too_large_is_told_with_the_limit(run_code: RunCode) -> None:
    told = run_code("hello(); open('big', 'wb').write(b'x' * (17 << 20))")
    assert failure(told) == (TRANSIENT, "child_died")
    assert "a file that a child writes may have 16 MB" in told.ending.message


def test_a_child_that_fills_the_disk_with_many_files(run_code: RunCode) -> None:
    told = run_code(
        "hello()\nfor i in range(6): open(str(i), 'wb').write(b'x' * (8 << 20))\ntime.sleep(60)",
    )
    assert failure(told) == (TRANSIENT, "scratch_full")


def test_a_child_that_says_the_disk_is_full_is_not_believed(run_code: RunCode) -> None:
    """It would be tried again without end."""
    told = run_code("hello(); import errno; raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))")
    assert failure(told) == (TRANSIENT, "child_died")
    assert "No space left on device" in told.ending.message


@pytest.mark.parametrize(
    "end", ["time.sleep(60)", "sys.exit(1)", "send('failure', kind='permanent', reason='x', message='')"]
)
def test_a_worker_whose_disk_runs_full_blames_no_child(run_code: RunCode, end: str) -> None:
    told = run_code(f"hello(); {end}", smallest_free_bytes=1 << 60)
    assert failure(told) == (TRANSIENT, "disk_full")
    assert f"{1 << 40} MB are needed; free some" in told.ending.message


def test_a_child_that_leaves_others_no_disk_is_told_so(run_code: RunCode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driftline_worker.scratch.Scratch.free_bytes", lambda _: 1 << 20)
    told = run_code("hello(); open('big', 'wb').write(b'x' * (4 << 20)); time.sleep(60)", smallest_free_bytes=2 << 20)
    assert failure(told) == (TRANSIENT, "scratch_full")
    assert "the child wrote 4 MB and left 1 MB on the worker's disk" in told.ending.message


def test_a_child_that_burns_cpu(run_code: RunCode) -> None:
    told = run_code("hello()\nwhile True: pass", cpu_seconds=1)
    assert failure(told) == (PERMANENT, "cpu_limit")


def test_a_child_that_multiplies(run_code: RunCode) -> None:
    told = run_code("hello()\nfor _ in range(60): subprocess.Popen(['/bin/sleep', '60'])\ntime.sleep(60)")
    assert failure(told) == (PERMANENT, "too_many_processes")


def test_a_child_that_lingers_after_its_result_is_believed(run_code: RunCode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driftline_worker.supervision.AFTERLIFE_SECONDS", 0.5)
    told = run_code("hello(); case('a'); send('result', lines=1); time.sleep(60)")
    assert isinstance(told.ending, Succeeded), told.ending
    assert told.ending.seconds < 15


def test_a_grandchild_that_keeps_the_channel_open_holds_nobody_up(run_code: RunCode) -> None:
    told = run_code("hello(); subprocess.Popen(['/bin/sleep', '60'], pass_fds=[FD]); os._exit(1)")
    assert failure(told) == (TRANSIENT, "child_died")
    assert told.ending.seconds < 15


@pytest.mark.parametrize("why", ["lease_gone", "stopped", "worker_stopped"])
def test_a_stop_request_ends_the_child_at_once(run_code: RunCode, why: Any) -> None:
    stop = StopRequest()
    threading.Timer(0.5, stop.ask, [why, "because"]).start()
    begun = time.monotonic()
    told = run_code("hello(); time.sleep(60)", stop=stop)
    assert time.monotonic() - begun < 10
    if why == "worker_stopped":
        assert failure(told) == (TRANSIENT, "worker_stopped")
    else:
        assert told.ending == Abandoned("because")
