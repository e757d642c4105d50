"""The child that builds a vLLM in full: `python -P -s build_engine.py --spec FILE --channel-fd N`, in the vLLM environment.

The command comes from driftline.toml; the sources are the commit's, which is why this is a child. Its words `{python}` and
`{out}` are the environment's interpreter and the folder that must hold the package afterwards.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

if not __package__:
    # Run by path: give the package its name without putting any folder of the project on the import path.
    package = ModuleType("driftline_worker")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["driftline_worker"] = package

from driftline_worker.children.kernel_child import Refusal, run_with_spec
from driftline_worker.children.line_channel import Channel

PROGRESS_SECONDS = 5.0
LOG = "build.log"
LAST_CHARACTERS = 3000
"""Of what the build printed: compilers say at the end what was wrong."""


def main(arguments: list[str]) -> int:
    """Run one build; the exit code."""
    return run_with_spec("build one commit of vLLM in full", build, arguments)


def build(spec_file: Path, channel: Channel) -> None:
    """Copy the sources, run the command there, and look at what it left. Raises Refusal build_failed."""
    spec = json.loads(spec_file.read_text(encoding="utf-8"))
    source, out = Path.cwd() / "source", Path(spec["out"])
    shutil.copytree(spec["tree"], source, symlinks=True)
    out.mkdir(parents=True)
    command = [word.replace("{python}", sys.executable).replace("{out}", str(out)) for word in spec["command"]]
    code = run(command, source, spec, channel)
    if code != 0:
        raise Refusal("permanent", "build_failed", f"the build ended with exit code {code}: {printed()}")
    if not (out / spec["package"] / "__init__.py").is_file():
        raise Refusal(
            "permanent", "build_failed", f"the build left no package {spec['package']} in {{out}}: {printed()}"
        )


def run(command: list[str], source: Path, spec: dict[str, object], channel: Channel) -> int:
    """The command's exit code. How long it has run is told all the while: a compiler says nothing for minutes."""
    told = {
        "MAX_JOBS": str(spec["threads"]),
        "SETUPTOOLS_SCM_PRETEND_VERSION": str(spec["release"]),
    }  # there is no .git
    started, limit = time.monotonic(), int(str(spec["seconds"]))
    with Path(LOG).open("wb") as log:
        try:
            process = subprocess.Popen(
                command, cwd=source, env=os.environ | told, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        except OSError as error:
            raise Refusal("permanent", "build_failed", f"{command[0]} cannot be run: {error.strerror}") from error
        while True:
            elapsed = int(time.monotonic() - started)
            channel.send("progress", phase="build_engine", done=elapsed, total=max(elapsed, limit))
            try:
                return process.wait(PROGRESS_SECONDS)
            except subprocess.TimeoutExpired:
                continue


def printed() -> str:
    """The last of what the build printed."""
    return Path(LOG).read_text(encoding="utf-8", errors="replace")[-LAST_CHARACTERS:].strip() or "it printed nothing"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
