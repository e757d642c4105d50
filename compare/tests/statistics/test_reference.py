"""The project's reference figures for a whole run, by a reduced simulation; benchmarks/statistics_reference.py is full-size."""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from driftline.statistics.holm import adjusted

RUNS = 20_000


@pytest.fixture(scope="module")
def reference(benchmark_module: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_module("statistics_reference")


@pytest.fixture(scope="module")
def simulated(reference: ModuleType) -> dict[str, list[float]]:
    return {row.name: reference.simulated(row, RUNS, seed=1) for row in reference.REFERENCES}


def test_every_figure_comes_out_within_its_error(reference: ModuleType, simulated: dict[str, list[float]]) -> None:
    for row in reference.REFERENCES:
        assert reference.agrees(row, simulated[row.name]), (row.name, simulated[row.name], row.percent)


def test_the_documented_figures_are_those_of_the_simulation(
    reference: ModuleType, simulated: dict[str, list[float]]
) -> None:
    page = (Path(__file__).parents[3] / "docs/statistics.md").read_text(encoding="utf-8")
    for row in reference.REFERENCES:
        found = re.search(rf"^\| {re.escape(row.name)} \|(.*)\|$", page, re.MULTILINE)
        assert found, row.name
        documented = [float(cell) for cell in found[1].split("|")]
        # The page has five times as many runs; 20,000 at 50 % have a standard error of 0.35 points.
        assert documented == pytest.approx(simulated[row.name], abs=4 * 0.4 if row.allowed > 1 else 0.4)


def test_false_alarms_stay_below_the_level_however_the_filters_are_coupled(
    reference: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for coupling in (0.0, 0.5, 1.0):
        monkeypatch.setattr(reference, "COUPLING", coupling)
        assert max(reference.simulated(reference.REFERENCES[0], RUNS, seed=2)) <= 5.0


def test_the_vectorised_correction_is_holms(reference: ModuleType) -> None:
    """Both say the same of many p-values, ties and zeros among them."""
    rng = np.random.default_rng(3)
    p_values = np.round(rng.uniform(0, 0.06, size=(500, 4)), 3)
    expected = [[p <= 0.05 for p in adjusted(list(row), 4)] for row in p_values]
    assert reference.rejected(p_values).tolist() == expected
