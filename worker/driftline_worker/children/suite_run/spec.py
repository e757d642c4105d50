"""What a tests child is asked to do: the spec file as one frozen value, refused by name if it does not fit."""

import json
from dataclasses import dataclass
from pathlib import Path

from driftline_worker.children.kernel_spec import SpecError, several, text


@dataclass(frozen=True)
class SuiteSpec:
    """tree: the commit's files at their own places. engine: the commit's vLLM package, to be laid over the installed one."""

    tree: Path
    paths: tuple[str, ...]
    arguments: tuple[str, ...]
    import_from: tuple[str, ...]
    seconds_per_test: float
    device: str
    engine: Path | None

    @property
    def there(self) -> tuple[str, ...]:
        """The paths that this commit has."""
        return tuple(path for path in self.paths if (self.tree / path).exists())


def read_suite(path: Path) -> SuiteSpec:
    """Raises SpecError naming the file or the field that does not fit."""
    try:
        fields = json.loads(path.read_text())
        seconds = float(fields.get("seconds_per_test", 300))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SpecError(f"the spec file {path.name} cannot be read: {error}") from error
    engine = fields.get("engine")
    return SuiteSpec(
        tree=Path(text(fields, "tree")), paths=words(fields, "paths"), arguments=words(fields, "arguments"),
        import_from=words(fields, "import_from"), seconds_per_test=seconds, device=text(fields, "device", "cpu"),
        engine=None if engine is None else Path(str(engine)),
    )  # fmt: skip


def words(fields: dict[str, object], name: str) -> tuple[str, ...]:
    return tuple(map(str, several(fields, name, (), str))) if fields.get(name) else ()
