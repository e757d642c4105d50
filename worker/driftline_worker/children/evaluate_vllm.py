"""The evaluation child of engine vllm: `python -P -s evaluate_vllm.py --spec FILE --channel-fd N`, in a vLLM environment.

As evaluate.py: hello before anything heavy, JSON lines on the given descriptor, exit code 0 after `result`, 1 after
`failure`.
"""

import argparse
import sys
from pathlib import Path
from types import ModuleType

if not __package__:
    # Run by path: give the package its name without putting any folder of the project on the import path.
    package = ModuleType("driftline_worker")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["driftline_worker"] = package

from driftline_worker.children.kernel_child import failure_of
from driftline_worker.children.line_channel import Channel
from driftline_worker.children.vllm_engine.spec import read_spec


def main(arguments: list[str]) -> int:
    """Run one evaluation; the exit code."""
    parser = argparse.ArgumentParser(description="evaluate one lane on vLLM at one commit")
    parser.add_argument("--spec", type=Path, required=True, help="JSON file: what to evaluate")
    parser.add_argument("--channel-fd", type=int, required=True, help="descriptor of the pipe for JSON lines")
    options = parser.parse_args(arguments)
    channel = Channel(options.channel_fd)
    channel.hello()
    failure = failure_of(lambda: evaluate(options.spec, channel))
    if failure is None:
        channel.finish()
        return 0
    channel.fail(failure.kind, failure.reason, str(failure))
    return 1


def evaluate(spec_file: Path, channel: Channel) -> None:
    """Send every line between the first and the last. Raises Refusal."""
    spec = read_spec(spec_file)
    channel.send("progress", phase="start_engine", done=0, total=1)  # what is imported now is part of an engine's start
    from driftline_worker.children.vllm_engine.evaluation import run_evaluation  # torch, lm-eval: seconds

    run_evaluation(spec, channel)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
