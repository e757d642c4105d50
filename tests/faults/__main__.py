"""`make faults N=200`: seeds FIRST to FIRST + N - 1, on JOBS stacks side by side; a line a seed, exit code 1 if one failed."""

import argparse
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "shared"), str(TESTS.parent / "example"), str(TESTS.parent / "deploy")]

from faults.schedule import make_schedule  # noqa: E402
from faults.season import Outcome, season  # noqa: E402


def play(seeds: list[int]) -> int:
    """How many failed. A seed that failed gets the stack of the next one replaced: it must not answer for what is left."""
    failed, waiting = 0, list(seeds)
    while waiting:
        with season() as stage:
            outcome = None
            while waiting and (outcome is None or not outcome.problems):
                outcome = stage.play(waiting.pop(0))
                _tell(outcome)
                failed += bool(outcome.problems)
    return failed


def _tell(outcome: Outcome) -> None:
    lines = [str(outcome)]
    if outcome.problems:
        lines += [f"  {problem}" for problem in outcome.problems]
        lines += [str(outcome.schedule), f"  replay: make faults SEED={outcome.schedule.seed}"]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def share(seeds: list[int], jobs: int) -> int:
    """The exit code of `jobs` processes, each with a stack of its own and every so-manieth seed."""
    parts = [",".join(map(str, seeds[place::jobs])) for place in range(min(jobs, len(seeds)))]
    command = [sys.executable, "-P", str(Path(__file__).parent), "--only"]
    running = [subprocess.Popen([*command, part]) for part in parts]
    codes = [one.wait() for one in running]
    return 1 if any(codes) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2, help="stacks side by side")
    parser.add_argument("--only", help="these seeds, with commas between, on one stack")
    parser.add_argument("--print", action="store_true", help="print the schedules and do nothing")
    options = parser.parse_args()
    seeds = list(range(options.first, options.first + options.count))
    if options.only:
        seeds = [int(seed) for seed in options.only.split(",")]
    if options.print:
        sys.stdout.write("\n".join(str(make_schedule(seed)) for seed in seeds) + "\n")
        return 0
    if options.only is None:
        return share(seeds, options.jobs)
    return 1 if play(seeds) else 0


if __name__ == "__main__":
    sys.exit(main())
