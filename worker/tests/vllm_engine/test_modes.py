"""Modes are read from source trees as vLLM had them before 0.8, with both engines, and since 0.11."""

from pathlib import Path

import pytest
from driftline_worker.children.vllm_engine.modes import Modes, SourceUnreadable, modes_of

ENGINE = "class LLMEngine:\n    def step(self): ...\n"
ALIAS = "from vllm.v1.engine.llm_engine import LLMEngine as V1LLMEngine\n\nLLMEngine = V1LLMEngine\n"
SWITCH = 'environment_variables = {\n    "VLLM_USE_V1": lambda: bool(int(os.getenv("VLLM_USE_V1", "1"))),\n}\n'
NO_SWITCH = '# VLLM_USE_V1 is gone\nGONE = ["VLLM_USE_V1"]\nenvironment_variables = {"VLLM_HOST_IP": lambda: ""}\n'


def tree(folder: Path, *, envs: str, v0: str | None, v1: str | None) -> Path:
    files = {"envs.py": envs, "engine/llm_engine.py": v0, "v1/engine/llm_engine.py": v1}
    for name, text in files.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("envs", "v0", "v1", "expected"),
    [
        (NO_SWITCH, ENGINE, None, Modes(v0=True, v1=False, switch=False)),  # 0.6
        (SWITCH, ENGINE, ENGINE, Modes(v0=True, v1=True, switch=True)),  # 0.10.0
        (SWITCH, ALIAS, ENGINE, Modes(v0=False, v1=True, switch=True)),  # 0.11
        (NO_SWITCH, ALIAS, ENGINE, Modes(v0=False, v1=True, switch=False)),  # 0.29 and later
    ],
)
def test_modes_of_the_releases(tmp_path: Path, envs: str, v0: str, v1: str | None, expected: Modes) -> None:
    assert modes_of(tree(tmp_path, envs=envs, v0=v0, v1=v1)) == expected


def test_what_is_lacking_is_told_with_the_file() -> None:
    new = Modes(v0=False, v1=True, switch=True)
    assert new.lacks("V1") is None
    assert new.lacks("V0") == (
        "this vLLM has no V0 engine: vllm/engine/llm_engine.py defines no LLMEngine; it has V1 engine"
    )
    assert "no VLLM_USE_V1" in (Modes(v0=True, v1=True, switch=False).lacks("V0") or "")
    assert Modes(v0=True, v1=False, switch=False).lacks("V0") is None


def test_the_switch_is_set_only_where_it_is_known() -> None:
    assert Modes(v0=True, v1=True, switch=True).variables("V0") == {"VLLM_USE_V1": "0"}
    assert Modes(v0=False, v1=True, switch=False).variables("V1") == {}


def test_a_tree_that_is_no_vllm_and_one_that_is_no_python(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match=r"vllm/envs\.py is missing"):
        modes_of(tmp_path)
    with pytest.raises(SourceUnreadable, match=r"vllm/engine/llm_engine\.py cannot be read"):
        modes_of(tree(tmp_path, envs=SWITCH, v0="class LLMEngine(:\n", v1=ENGINE))
