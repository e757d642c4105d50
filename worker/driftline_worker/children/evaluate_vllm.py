"""The evaluation child of engine vllm: `python -P -s evaluate_vllm.py --spec FILE --channel-fd N`, in a vLLM environment.

As evaluate.py: hello before anything heavy, JSON lines on the given descriptor, exit code 0 after `result`, 1 after
`failure`.
"""

import sys
from pathlib import Path
from types import ModuleType

if not __package__:
    # Run by path: give the package its name without putting any folder of the project on the import path.
    package = ModuleType("driftline_worker")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["driftline_worker"] = package

from driftline_worker.children.heavy_imports import heavy_imports
from driftline_worker.children.kernel_child import run_with_spec
from driftline_worker.children.line_channel import Channel
from driftline_worker.children.vllm_engine.spec import read_spec


def main(arguments: list[str]) -> int:
    """Run one evaluation; the exit code."""
    return run_with_spec("evaluate one lane on vLLM at one commit", evaluate, arguments)


def evaluate(spec_file: Path, channel: Channel) -> None:
    """Send every line between the first and the last. Raises Refusal."""
    spec = read_spec(spec_file)
    channel.send("progress", phase="start_engine", done=0, total=1)  # what is imported now is part of an engine's start
    with heavy_imports():
        from driftline_worker.children.vllm_engine.evaluation import run_evaluation

    run_evaluation(spec, channel)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
