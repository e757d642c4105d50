"""One embedded stack for all tests of this folder, and the repository of a vLLM that is installed here."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from places import PYTHON, RELEASE


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A running embedded stack; `.server` answers."""
    import stacks

    assert PYTHON.exists(), "there is no vLLM environment; make it: make vllm-env"
    stacks.PATIENCE_SECONDS = 1500.0  # three processes a child import torch and vLLM, twice a run
    running = stacks.Embedded(tmp_path_factory.mktemp("stack"))
    running.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def vllm_package() -> Path:
    """The installed package's folder."""
    code = "import importlib.util as u; print(u.find_spec('vllm').origin)"
    answer = subprocess.run([str(PYTHON), "-P", "-c", code], check=True, capture_output=True, text=True)
    return Path(answer.stdout.strip()).parent


@pytest.fixture(scope="session")
def vllm_repository(tmp_path_factory: pytest.TempPathFactory, vllm_package: Path) -> Path:
    from vllm_repository import make_repository

    return make_repository(tmp_path_factory.mktemp("vllm") / "repository", vllm_package, RELEASE)


@pytest.fixture(scope="session")
def rows(stack: object):  # type: ignore[no-untyped-def]
    """Ask the stack's database."""

    def ask(query: str, *values: object) -> list[tuple[object, ...]]:
        with stack.database() as connection:  # type: ignore[attr-defined]
            return connection.execute(query, values).fetchall()

    return ask
