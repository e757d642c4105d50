"""Random faults on the production processes, PostgreSQL and Redis: ten seeds here, as many as one likes by `make faults`."""

import re
import subprocess
import sys

from faults.schedule import COSTLY, MOST_COSTLY, REPORTS, Fault, make_schedule
from stacks import ROOT

SEEDS = 10
COMMAND = [sys.executable, "-P", str(ROOT / "tests" / "faults")]
LIMIT_SECONDS = 900
"""Fifteen times what it takes on two idle cores."""


def test_the_same_seed_gives_the_same_schedule_in_any_process():
    printed = [
        subprocess.run([*COMMAND, "--print", "--count", "50"], check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert printed[0] == printed[1] == "\n".join(str(make_schedule(seed)) for seed in range(1, 51)) + "\n"


def test_schedules_hold_every_fault_in_order_and_few_that_cost_an_attempt():
    schedules = [make_schedule(seed) for seed in range(200)]
    assert {step.fault for one in schedules for step in one.steps} == set(Fault)
    for one in schedules:
        places = [step.at for step in one.steps]
        assert places == sorted(set(places))
        assert all(1 <= at <= REPORTS for at in places)
        assert sum(step.fault in COSTLY for step in one.steps) <= MOST_COSTLY


def test_ten_seeds_end_with_every_run_complete_and_every_question_counted_once():
    played = subprocess.run(
        [*COMMAND, "--count", str(SEEDS)], check=False, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert played.returncode == 0, played.stdout + played.stderr
    told = re.findall(r"^seed (\d+): ok, (\d+) of (\d+) faults", played.stdout, re.M)
    assert sorted(int(seed) for seed, _, _ in told) == list(range(1, SEEDS + 1))
    assert sum(int(happened) for _, happened, _ in told) > SEEDS, "hardly anything went wrong, which proves little"
