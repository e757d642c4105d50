"""Which engines a vLLM source tree holds, read from its files: nothing of it is imported.

V0 ended with vLLM 0.11, where `vllm/engine/llm_engine.py` became another name for V1's class; VLLM_USE_V1, by which a
vLLM with both is told which one to start, lived on in `vllm/envs.py` for a while.
"""

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SWITCH: Final = "VLLM_USE_V1"
V0_ENGINE: Final = Path("engine/llm_engine.py")
V1_ENGINE: Final = Path("v1/engine/llm_engine.py")
ENVS: Final = Path("envs.py")
ENGINE_CLASS: Final = "LLMEngine"


class SourceUnreadable(ValueError):  # noqa: N818 - what it is
    """A file that tells the modes is missing or no Python. The message names it."""


@dataclass(frozen=True)
class Modes:
    """`v0` and `v1`: is the engine there? `switch`: does the tree know VLLM_USE_V1?"""

    v0: bool
    v1: bool
    switch: bool

    def lacks(self, mode: str) -> str | None:
        """Why this tree cannot serve `mode` (V0 or V1), or None if it can."""
        if not (self.v0 if mode == "V0" else self.v1):
            there = " and ".join(name for name, found in (("V0", self.v0), ("V1", self.v1)) if found) or "no"
            place = V0_ENGINE if mode == "V0" else V1_ENGINE
            return f"this vLLM has no {mode} engine: vllm/{place} defines no {ENGINE_CLASS}; it has {there} engine"
        if self.v0 and self.v1 and not self.switch:
            return f"this vLLM has both engines but no {SWITCH} in vllm/{ENVS} to choose {mode}"
        return None

    def variables(self, mode: str) -> dict[str, str]:
        """What to set so that `mode` comes up; nothing where there is no choice, for vLLM warns of what it lacks."""
        return {SWITCH: str(int(mode == "V1"))} if self.switch else {}


def modes_of(package: Path) -> Modes:
    """The modes of the vLLM whose package folder this is.

    Raises:
        SourceUnreadable: envs.py is missing, or one of the three files is no Python.
    """
    if not (package / ENVS).is_file():
        raise SourceUnreadable(f"vllm/{ENVS} is missing: this is no vLLM source tree")
    return Modes(
        v0=_defines_engine(package, V0_ENGINE), v1=_defines_engine(package, V1_ENGINE), switch=_names_switch(package)
    )


def _defines_engine(package: Path, file: Path) -> bool:
    """Whether the file defines the engine itself rather than naming another's."""
    if not (package / file).is_file():
        return False
    return any(isinstance(node, ast.ClassDef) and node.name == ENGINE_CLASS for node in _tree(package, file).body)


def _names_switch(package: Path) -> bool:
    """Whether envs.py has the switch as a key: a comment or a deprecation's text does not count."""
    return any(
        isinstance(key, ast.Constant) and key.value == SWITCH
        for node in ast.walk(_tree(package, ENVS))
        if isinstance(node, ast.Dict)
        for key in node.keys
    )


def _tree(package: Path, file: Path) -> ast.Module:
    try:
        return ast.parse((package / file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
        raise SourceUnreadable(f"vllm/{file} cannot be read: {error}") from error
