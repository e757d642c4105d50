"""Tests that cross packages: their helper modules, and the example repository that they submit."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "example"), str(ROOT / "deploy")]


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """The example repository of `make run`."""
    from repository import make_repository

    return make_repository(tmp_path_factory.mktemp("example") / "repository")
