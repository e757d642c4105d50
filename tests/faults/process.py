"""Entry of the production processes under faults: `python -P process.py MODULE`, told by environment variables

FAULTS_TIME_LAPSE  service and reconciler live so many times as fast: a lease or a back-off need not be waited for
FAULTS_EPOCH       the moment, in seconds since 1970, from which they do; all processes of a stack share it
FAULTS_SKEW        seconds by which a worker's wall clock is ahead
The worker's children are the quick ones beside this file. All else is the module itself, as docker-compose.yml starts it.
"""

import os
import runpy
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

CHILDREN = Path(__file__).resolve().parent / "children"


def lapse(factor: float, epoch: float) -> None:
    """Replace the service's clock before anything has read it."""
    from driftline_service import clock

    def fast() -> datetime:
        return datetime.fromtimestamp(epoch + (time.time() - epoch) * factor, UTC)

    clock.now_utc = fast


def skew(seconds: float) -> None:
    """Shift the wall clock of this process; what measures durations (time.monotonic) stays right, as on a real host."""
    true_time = time.time
    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: int((true_time() + seconds) * 1e9)


def main() -> None:
    module = sys.argv[1]
    if module == "driftline_worker":
        skew(float(os.environ["FAULTS_SKEW"]))
        from driftline_worker import sandbox

        sandbox.CHILDREN = CHILDREN
    else:
        lapse(float(os.environ["FAULTS_TIME_LAPSE"]), float(os.environ["FAULTS_EPOCH"]))
    sys.argv = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


main()
