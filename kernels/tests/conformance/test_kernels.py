"""The kernels of this work tree pass, in every backend, and the list of cases keeps its promises."""

from collections.abc import Callable
from pathlib import Path

import pytest
from mamba2_conformance.cases import catalogue

Check = Callable[..., list[dict[str, object]]]

SCANS_OF_TRITON = ("carried_state/lens_", "carried_state/tile_", "state_update/tile_", "packing/", "convolution/step")
"""Enough of Triton's cases to see every kernel and tile here; the end-to-end run asks all of them."""


@pytest.mark.parametrize(("backend", "prefixes"), [("reference", ("",)), ("torch", ("",)), ("triton", SCANS_OF_TRITON)])
def test_every_case_passes(check: Check, kernels_folder: Path, backend: str, prefixes: tuple[str, ...]) -> None:
    outcomes = check(kernels_folder, [backend], prefixes)
    assert len(outcomes) > 30
    assert [(one["name"], one["message"]) for one in outcomes if not one["passed"]] == []


def test_names_are_unique_and_all_cases_decide_but_those_of_bits() -> None:
    cases = list(catalogue.fixed())
    assert len({case.name for case in cases}) == len(cases)
    assert [case.name for case in cases if case.kind != "contract"] == ["carried_state/bits_of_a_split"]
    assert all(0 < len(case.config) <= 500 for case in cases)


def test_the_lengths_that_found_upstream_s_bugs_are_all_there() -> None:
    names = {case.name for case in catalogue.fixed()}
    lens = ("138_225", "40_100_37", "40_88", "10_118", "200_56", "70_58_128")
    assert {f"carried_state/lens_{one}" for one in lens} <= names
