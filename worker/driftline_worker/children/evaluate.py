"""The evaluation child: `python -P -s evaluate.py --spec FILE --channel-fd N`, in the eval environment, run by path.

Says hello before anything heavy is imported; writes JSON lines (driftline.contracts.channel) on the given descriptor
and nothing of meaning anywhere else. Exit code 0 after `result`, 1 after `failure`.
"""

import sys
from pathlib import Path
from types import ModuleType

if not __package__:
    # Run by path: give the package its name without putting any folder of the project on the import path.
    package = ModuleType("driftline_worker")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["driftline_worker"] = package

from driftline_worker.children.heavy_imports import absent, heavy_imports
from driftline_worker.children.hf_engine.spec import read_spec
from driftline_worker.children.kernel_child import run_with_spec
from driftline_worker.children.line_channel import Channel


def main(arguments: list[str]) -> int:
    """Run one evaluation; the exit code."""
    return run_with_spec("evaluate one lane with the kernels of one commit", evaluate, arguments)


def evaluate(spec_file: Path, channel: Channel) -> None:
    """Send every line between the first and the last. Raises Refusal."""
    spec = read_spec(spec_file)
    with heavy_imports(), absent("sklearn"):  # transformers wants it for assisted decoding, a second of imports
        from driftline_worker.children.hf_engine.evaluation import run_evaluation

    run_evaluation(spec, channel)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
