"""The constants and figures that docs/statistics.md states are those of the code."""

import importlib
import re
from math import ceil
from pathlib import Path

import pytest
from driftline.statistics.mcnemar import exact_p
from driftline.statistics.paired_interval import paired_interval
from driftline.statistics.power import smallest_visible_drop

PAGE = (Path(__file__).parents[3] / "docs/statistics.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([A-Z_]+) \| (\S+) \| (driftline\.\S+) \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("name", "value", "module"), ROWS, ids=[f"{module}.{name}" for name, _, module in ROWS])
def test_constant_is_the_one_in_the_code(name: str, value: str, module: str) -> None:
    assert getattr(importlib.import_module(module), name) == float(value)


def test_the_table_was_read() -> None:
    assert len(ROWS) == PAGE.count("| driftline.") >= 17


def test_figures_in_the_prose() -> None:
    assert ceil(1000 * paired_interval(0, 0, 300, level=0.9)[1]) == 10, "within 1.0 points"
    assert round(100 * paired_interval(0, 0, 60, level=0.9)[1], 1) == 4.9
    assert round(100 * (smallest_visible_drop(0, 0, 300, alpha=0.05 / 6) or 0), 1) == 3.4
    assert round(100 * (smallest_visible_drop(26, 27, 1319, alpha=0.05) or 0), 1) == 1.6
    assert [round(exact_p(*pair), 5) for pair in ((70, 40), (6, 0), (5, 0))] == [0.00545, 0.03125, 0.0625]
