"""`make run`: the whole path on this machine, from two commits of an example repository to two verdicts.

Starts the embedded stack, submits each branch against main, shows progress, prints the report and the page's address,
and writes out/report.md and out/report.json. On a terminal the pages stay up until Ctrl-C.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "example"))

from driftline.cli import server as servers  # noqa: E402
from driftline.cli.failure import EXIT_REGRESSED, CommandError  # noqa: E402
from driftline.cli.watch import watch_run  # noqa: E402
from repository import make_repository  # noqa: E402

START_SECONDS = 90.0
"""The embedded stack takes 5 s; a machine with a full disk cache of torch may take longer."""


@contextmanager
def embedded_stack(data_dir: Path, log: Path) -> Iterator[servers.Server]:
    """The stack that runs on the data folder already, else one of our own that ends with us."""
    if (data_dir / "server.json").exists():
        try:
            running = servers.find(data_dir, None, None)
            running.get("/healthz")
        except CommandError:
            pass
        else:
            yield running
            return
    with log.open("w", encoding="utf-8") as output:
        command = [sys.executable, "-P", "-m", "driftline_service.embedded", "--data-dir", str(data_dir), "--port", "0"]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
    try:
        yield _wait_for_server(data_dir, process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_for_server(data_dir: Path, process: "subprocess.Popen[bytes]", log: Path) -> servers.Server:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            found = servers.find(data_dir, None, None)
            found.get("/readyz")
        except CommandError:
            time.sleep(0.2)
        else:
            return found
    raise SystemExit(f"the embedded stack did not start; the end of {log}:\n{log.read_text(encoding='utf-8')[-2000:]}")


def submit_all(server: servers.Server, options: argparse.Namespace) -> list[tuple[str, str]]:
    """One run per branch of the example repository: (run id, page)."""
    repository = make_repository(options.data_dir.parent / f"{options.data_dir.name}-example")
    runs = []
    for branch in repository.branches:
        # Not confirmed by a fresh pair: it would take minutes more, and one CPU gives the same answers again.
        body = {"repo": str(repository.path), "head": branch, "base": "main", "name": branch, "confirm": False}
        body |= {"questions": options.questions} if options.questions else {}
        run = server.post("/api/v1/runs", body)
        runs.append((str(run["run_id"]), str(run["url"])))
        print(f"{branch}: {run['url']}", flush=True)
    return runs


def write_reports(server: servers.Server, runs: list[tuple[str, str]], out: Path) -> None:
    """out/report.md and out/report.json, as every reader of the API gets them."""
    out.mkdir(parents=True, exist_ok=True)
    reports = [server.get(f"/api/v1/runs/{run_id}/report") for run_id, _ in runs]
    texts = [server.get_text(f"/api/v1/runs/{run_id}/report", format="markdown") for run_id, _ in runs]
    (out / "report.json").write_text(json.dumps({"runs": reports}, indent=2) + "\n", encoding="utf-8")
    (out / "report.md").write_text("\n\n---\n\n".join(texts), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=ROOT / ".driftline")
    parser.add_argument("--out", type=Path, default=ROOT / "out")
    parser.add_argument("--questions", type=int, help="ask fewer questions than the lanes do")
    options = parser.parse_args()
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    with embedded_stack(options.data_dir.resolve(), options.out / "serve.log") as server:
        runs = submit_all(server, options)
        codes = [watch_run(server, run_id) for run_id, _ in runs]
        write_reports(server, runs, options.out)
        print(
            f"\n{len(runs)} runs in {time.monotonic() - began:.0f} s; reports: {options.out}/report.md and report.json"
        )
        for run_id, page in runs:
            print(f"  {page}  ({run_id})")
        if sys.stdout.isatty():
            _stay(server.url)
    if any(code not in (0, EXIT_REGRESSED) for code in codes):
        raise SystemExit("a run could not be judged; the report says why")


def _stay(url: str) -> None:
    print(f"\nThe pages are at {url} until Ctrl-C; `make serve` brings them back later.")
    try:
        signal.pause()
    except KeyboardInterrupt:
        print("stopping")


if __name__ == "__main__":
    main()
