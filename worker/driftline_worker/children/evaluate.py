"""The evaluation child: `python -P -s evaluate.py --spec FILE --channel-fd N`, in the eval environment, run by path.

Says hello before anything heavy is imported; writes JSON lines (driftline.contracts.channel) on the given descriptor and
nothing else of meaning anywhere. Exit code 0 after `result`, 1 after `failure`.
"""

import argparse
import sys
import traceback
from pathlib import Path
from types import ModuleType

if not __package__:  # Run by path: give the package its name without putting any folder of the project on the import path.
    package = ModuleType("driftline_worker")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["driftline_worker"] = package

from driftline_worker.children.hf_engine.refusal import PERMANENT, TRANSIENT, Refusal
from driftline_worker.children.hf_engine.spec import read_spec
from driftline_worker.children.line_channel import Channel


def main(arguments: list[str]) -> int:
    """Run one evaluation; the exit code."""
    parser = argparse.ArgumentParser(description="evaluate one lane with the kernels of one commit")
    parser.add_argument("--spec", type=Path, required=True, help="JSON file: what to evaluate")
    parser.add_argument("--channel-fd", type=int, required=True, help="descriptor of the pipe for JSON lines")
    options = parser.parse_args(arguments)
    channel = Channel(options.channel_fd)
    channel.hello()
    refusal = outcome(options.spec, channel)
    if refusal is None:
        channel.finish()
        return 0
    channel.fail(refusal.kind, refusal.reason, refusal.message)
    return 1


def outcome(spec_file: Path, channel: Channel) -> Refusal | None:
    """None when the evaluation was made, else why not. The one place where any exception ends."""
    try:
        spec = read_spec(spec_file)
        from driftline_worker.children.hf_engine.evaluation import run_evaluation  # torch, transformers, lm-eval: seconds

        run_evaluation(spec, channel)
    except Refusal as refusal:
        return refusal
    except MemoryError as error:
        return Refusal(TRANSIENT, "out_of_memory", str(error) or "the child ran out of memory")
    except Exception as error:
        traceback.print_exc()
        if type(error).__name__ == "OutOfMemoryError":
            return Refusal(TRANSIENT, "out_of_memory", str(error))
        return Refusal(PERMANENT, "child_crashed", traceback.format_exc())
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
