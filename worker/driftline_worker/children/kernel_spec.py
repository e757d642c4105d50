"""What a check or a build child is asked to do: the spec file as one frozen value, refused by name if it does not fit.

Standard library only: a spec is read before anything heavy is imported.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BACKENDS = ("torch", "triton")
ARCHITECTURES = (80, 90, 100)
"""Compute capabilities of A100, H100 and B200, times ten."""


class SpecError(ValueError):
    """A spec file that cannot be read or does not say what is needed."""


@dataclass(frozen=True)
class Triton:
    """A release to compile under, and for which architectures. folder: where it is installed; None is the environment's
    own. version: "" is any."""

    name: str
    version: str
    folder: Path | None
    architectures: tuple[int, ...]


@dataclass(frozen=True)
class KernelSpec:
    """import_dir holds the kernels' package. A check reads backends and device, a build Tritons. processes: at once."""

    import_dir: Path
    layout: str
    backends: tuple[str, ...]
    device: str
    tritons: tuple[Triton, ...]
    processes: int = 1


def read_spec(path: Path) -> KernelSpec:
    """Raises SpecError naming the file or the field that does not fit."""
    try:
        fields = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SpecError(f"the spec file {path.name} cannot be read: {error}") from error
    if not isinstance(fields, dict):
        raise SpecError(f"the spec file {path.name} holds a {type(fields).__name__}; it must hold an object")
    architectures = numbers(fields, ARCHITECTURES)
    own = Triton("own", "", None, architectures)
    return KernelSpec(
        import_dir=Path(text(fields, "import_dir")),
        layout=text(fields, "layout"),
        backends=tuple(str(name) for name in several(fields, "backends", BACKENDS, str)),
        device=text(fields, "device", "cpu"),
        processes=whole_number(fields, "processes"),
        tritons=tuple(triton_of(one, architectures) for one in fields.get("tritons") or ()) or (own,),
    )


def triton_of(fields: object, architectures: tuple[int, ...]) -> Triton:
    if not isinstance(fields, dict):
        raise SpecError(f"an entry of spec field 'tritons' must be an object, got {fields!r}")
    folder = fields.get("folder")
    place = None if folder is None else Path(str(folder))
    return Triton(text(fields, "name"), text(fields, "version"), place, numbers(fields, architectures))


def numbers(fields: Mapping[str, object], default: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(str(one)) for one in several(fields, "architectures", default, int))


def text(fields: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or not value:
        raise SpecError(f"spec field {name!r} must be text, got {value!r}")
    return value


def whole_number(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name, 1)
    if type(value) is not int or value < 1:
        raise SpecError(f"spec field {name!r} must be a whole number of at least 1, got {value!r}")
    return value


def several(fields: Mapping[str, object], name: str, default: tuple[object, ...], kind: type) -> tuple[object, ...]:
    value = fields.get(name, default)
    if not isinstance(value, list | tuple) or not value or not all(type(item) is kind for item in value):
        raise SpecError(f"spec field {name!r} must be a list of {kind.__name__} with at least one entry, got {value!r}")
    return tuple(value)
