"""What needs no server: help, errors that name the remedy, doctor, data."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

Driftline = Callable[..., "subprocess.CompletedProcess[str]"]


def test_help_comes_at_once_and_loads_nothing_heavy(driftline: Driftline, tmp_path: Path) -> None:
    started = time.monotonic()
    answer = driftline("--help", folder=tmp_path)
    assert answer.returncode == 0
    assert "driftline doctor" in answer.stdout
    assert time.monotonic() - started < 2.0, "0.1 s on an idle machine; this one may be busy"
    heavy = "{'numpy', 'scipy', 'httpx', 'pydantic', 'torch', 'rich.console'}"
    program = f"import sys, driftline.cli.app; print(sorted({heavy} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command",
    [
        "serve",
        "submit",
        "runs",
        "report",
        "cancel",
        "lanes",
        "check-kernels",
        "compare",
        "build-kernels",
        "data fetch",
        "data list",
        "doctor",
        "history",
        "impact",
        "import",
        "imports",
        "withdraw",
        "baseline",
        "rescore",
        "worker",
    ],
)
def test_each_command_teaches_by_example(driftline: Driftline, command: str, tmp_path: Path) -> None:
    answer = driftline(*command.split(), "--help", folder=tmp_path)
    assert answer.returncode == 0
    assert f"driftline {command}" in answer.stdout.split("Example", 1)[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["runs"], "start one with `driftline serve --data-dir .driftline`"),
        (["runs", "--server", "http://127.0.0.1:9"], "no answer from http://127.0.0.1:9"),
        (["submit", "--repo", "."], "Missing option '--head'; see `driftline submit --help`"),
        (["submit", "--server", "http://127.0.0.1:9", "--repo", "nowhere", "--head", "x"], "no such folder"),
        (["serve", "--port", "99999"], "'--port': Input should be less than or equal to 65535"),
        (["report", "x", "--format", "pdf"], "'pdf' is not one of"),
        (["nonsense"], "No such command 'nonsense'"),
        (["data", "fetch", "mmlu"], "no task 'mmlu'"),
        (["data", "fetch", "gsm8k", "--file", "nowhere"], "--file names it, or the folder that holds it"),
        (["data", "fetch", "gsm8k", "--file", "x", "--url", "http://h/"], "exclude each other"),
    ],
)
def test_a_mistake_is_one_line_and_a_remedy(
    driftline: Driftline, arguments: list[str], message: str, tmp_path: Path
) -> None:
    answer = driftline(*arguments, folder=tmp_path)
    assert answer.returncode == 1
    assert message in answer.stderr
    assert answer.stderr.startswith("driftline: ")
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("status", [200, 404])
def test_a_server_of_another_kind_is_told_in_a_line(driftline: Driftline, tmp_path: Path, status: int) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"<html>\n<p>Hello</p>\n</html>\n")

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        answer = driftline("runs", "--server", f"http://127.0.0.1:{server.server_port}", folder=tmp_path)
        server.shutdown()
        thread.join()
    assert (answer.returncode, answer.stderr.count("\n")) == (1, 1), answer.stderr
    assert "Driftline server" in answer.stderr


def test_doctor_says_what_is_there_and_how_to_get_the_rest(driftline: Driftline, tmp_path: Path) -> None:
    answer = driftline("doctor", "--json", folder=tmp_path)
    findings = {finding["part"]: finding for finding in json.loads(answer.stdout)}
    assert set(findings) >= {
        "Python",
        "evaluation environment",
        "torch",
        "lm-eval",
        "PostgreSQL",
        "git",
        "bubblewrap",
        "GPU",
        "Redis",
    }
    assert findings["Python"]["found"] == ".".join(map(str, sys.version_info[:3]))
    assert all(finding["remedy"] and finding["purpose"] for finding in findings.values())
    lacking = [part for part, finding in findings.items() if finding["required"] and not finding["ok"]]
    assert answer.returncode == (1 if lacking else 0), lacking


def test_doctor_fails_where_the_stack_cannot_run(driftline: Driftline, tmp_path: Path) -> None:
    answer = driftline("doctor", "--json", folder=tmp_path, PATH="/nowhere")
    findings = {finding["part"]: finding for finding in json.loads(answer.stdout)}
    assert (findings["git"]["ok"], findings["git"]["required"]) == (False, True)
    assert answer.returncode == 1
