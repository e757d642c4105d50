"""The tests child: `python -P -s tests.py --spec FILE --channel-fd N`, run by path in the environment the suite names.

Runs the repository's own kernel tests by pytest, in processes of their own that never hold the worker's pipe. A test
that fails, hangs, floods or ends its process is a line that says so. Exit code 0 after `result`, 1 after `failure`.
"""

import importlib.metadata
import importlib.util
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

if (
    not __package__
):  # Run by path: give the package its name without putting a folder of the project on the import path.
    package = ModuleType("driftline_worker")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["driftline_worker"] = package

from driftline_worker.children.kernel_child import Refusal, run_with_spec
from driftline_worker.children.line_channel import Channel
from driftline_worker.children.suite_run.spec import read_suite
from driftline_worker.children.suite_run.suite import Suite
from driftline_worker.children.suite_run.tolerances import tolerances_in
from driftline_worker.children.vllm_engine.overlay import import_first, make_overlay

TOLD = ("pytest", "torch", "triton", "numpy", "vllm")


def tests(spec_file: Path, channel: Channel) -> None:
    """Send the tolerances in the files, then one line a test. Raises Refusal if there is nothing to run."""
    spec = read_suite(spec_file)
    if not spec.there:
        raise Refusal("unsupported", "no_tests", f"this commit has none of {', '.join(spec.paths)}")
    channel.send("environment", must_match={}, recorded=versions())
    channel.send("progress", phase="tests", done=0, total=0)
    for tolerance in dict.fromkeys(tolerances_in(spec.tree, spec.there)):
        channel.send("tolerance", **asdict(tolerance))
    if spec.engine is not None:
        lay_over(spec.engine)
    Suite(spec, channel, Path.cwd() / "tree").run()


def lay_over(commit: Path) -> None:
    """The commit's vLLM over the compiled parts of the installed one, first on the tests' import path."""
    installed = importlib.util.find_spec("vllm")
    if installed is None or installed.origin is None:
        raise Refusal(
            "permanent", "no_vllm", f"{sys.executable} has no vLLM; make the environment that the suite names"
        )
    overlay = make_overlay(commit, Path(installed.origin).parent, Path.cwd() / "engine")
    import_first(overlay.folder)


def versions() -> dict[str, str]:
    found = {}
    for name in TOLD:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(run_with_spec("run the tests of one commit's kernels", tests, sys.argv[1:]))
