"""The rules that benchmarks/power.py compares do what their names say, on counts worked out by hand and a small file."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture(scope="module")
def power(benchmark_module: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_module("power")


def drawn(power: ModuleType, lost: tuple[int, int], gained: tuple[int, int], n: int = 1319, right: int = 800):
    return power.Drawn(n, np.array([[right, right]]), np.array([lost]), np.array([gained]))


@pytest.mark.parametrize(
    ("lost", "gained", "called"),
    [
        # 0.0152 down: significant, and wholly inside the margin.
        ((20, 20), (0, 0), {"its test alone"}),
        # 0.0303 down, significant and outside the margin.
        ((40, 40), (0, 0), {"Driftline", "its test alone", "0.03"}),
        # The same in one filter alone counts too; 60 against 20 is p < 1e-5.
        ((60, 0), (20, 0), {"Driftline", "its test alone", "0.03"}),
        ((0, 0), (40, 40), set()),
        # 0.0508 down of 0.6065: 8.4 % of it.
        ((67, 67), (0, 0), {"Driftline", "its test alone", "unpaired stderr", "0.03", "0.05", "8 % relative"}),
        ((106, 106), (0, 0), {"Driftline", "its test alone", "unpaired stderr", "0.03", "0.05", "8 % relative", "0.08"}),
        # Significant only before Holm: 35 against 18 has p = 0.0266.
        ((35, 20), (18, 20), set()),
    ],
)  # fmt: skip
def test_rules_on_known_counts(
    power: ModuleType, lost: tuple[int, int], gained: tuple[int, int], called: set[str]
) -> None:
    one = drawn(power, lost, gained)
    assert {name for name, rule in power.RULES.items() if rule(one).all()} == called


def test_mixtures_have_the_drop_that_they_are_made_for(power: ModuleType) -> None:
    best = np.repeat([[True, True], [False, False]], (60, 40), axis=0)
    other = np.repeat([[True, True], [False, False]], (20, 80), axis=0)
    mixed = power.mixture(best, other, (0.1, 0.3), 4000, np.random.default_rng(1))
    assert (mixed.head - mixed.base).mean() == pytest.approx(-0.2 * 0.4, abs=0.003)
    assert (mixed.lost + mixed.gained).mean() / 100 == pytest.approx(0.4 * (0.1 * 0.7 + 0.3 * 0.9), abs=0.003)


def test_the_published_file_is_scored_by_our_own_filters(power: ModuleType, tmp_path: Path) -> None:
    def solved(answer: str) -> dict[str, object]:
        return {"is_correct": answer == "18", "solution": f"It is <<9*2=18>>18.\nA: {answer}"}

    models = (power.BEST, *power.OTHERS)
    rows = [
        {"question": "?", "ground_truth": "9*2\nA: 18"} | dict.fromkeys(models, solved(each)) for each in ("18", "17")
    ]
    path = tmp_path / "solutions.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert power.right_answers(path)[power.BEST].tolist() == [[True, True], [False, False]]


RUNS = 1000


@pytest.fixture(scope="module")
def situations(power: ModuleType) -> list:
    return list(power.simulated(RUNS, np.random.default_rng(3)))


def test_without_a_drop_driftline_says_so_in_at_most_one_run_in_forty(power: ModuleType, situations: list) -> None:
    """Two-sided at 5 % over both filters, so a drop in 2.5 %."""
    unchanged = [power.driftline(row.drawn).mean() for row in situations if row.drop == 0]
    assert len(unchanged) == 6
    assert max(unchanged) <= 0.025 + 3 * 0.005


def test_the_documented_rows_are_those_of_the_simulation(power: ModuleType, situations: list) -> None:
    page = (Path(__file__).parents[3] / "docs/power.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| simulated |")]
    assert len(rows) == len(situations)
    for cells, row in zip(rows, situations, strict=True):
        assert (cells[1].strip(), float(cells[2])) == (f"{row.n:,}", 100 * row.drop)
        documented = np.array([float(cell) for cell in cells[4:]]) / 100
        ours = np.array([rule(row.drawn).mean() for rule in power.RULES.values()])
        # Four standard errors, never less than what a thousand runs can show of a rare call.
        assert np.all(np.abs(ours - documented) <= 0.004 + 4 * np.sqrt(documented * (1 - documented) / RUNS)), cells
