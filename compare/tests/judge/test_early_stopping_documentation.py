"""The constants and figures that docs/early_stopping.md states are those of the code."""

import importlib
import math
import re
from pathlib import Path

import pytest
from driftline.judge.stopping import EARLY_ALPHA, FULL_ALPHA, INSIDE_ALPHA, SETTLED
from driftline.statistics.e_process import LOSS_PRIOR, STAKES, log_e_inside

PAGE = (Path(__file__).parents[3] / "docs/early_stopping.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([A-Z_]+) \| (\S+) \| (driftline\.\S+) \|", PAGE, re.MULTILINE)


def test_constants_are_those_in_the_code() -> None:
    assert len(ROWS) == PAGE.count("| driftline.") == 7
    for name, value, module in ROWS:
        assert getattr(importlib.import_module(module), name) == pytest.approx(float(value))


def test_figures_in_the_prose() -> None:
    assert f"at least {1 / INSIDE_ALPHA:.0f}." in PAGE
    assert f"at least\n   {1 / EARLY_ALPHA:.0f} ×" in PAGE
    assert f"less than {SETTLED:.0%}".replace("%", " %") in PAGE
    assert f"with at least {1 - SETTLED:.0%}".replace("%", " %") in PAGE
    assert pytest.approx(0.05) == EARLY_ALPHA + FULL_ALPHA
    assert "stakes 0.3, 0.5, 0.7, 0.9" in PAGE
    assert STAKES == (0.3, 0.5, 0.7, 0.9)
    assert LOSS_PRIOR == (6, 2)
    assert log_e_inside(0, 0, 200, margin=0.025) >= math.log(25) > log_e_inside(0, 0, 100, margin=0.025)
