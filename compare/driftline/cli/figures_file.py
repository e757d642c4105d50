"""A file of figures, read and checked before anything is sent: the documented form of results without samples."""

import json
from importlib import resources
from pathlib import Path

from driftline.cli.failure import CommandError
from driftline.contracts.imports import ReportedFigures

LARGEST_BYTES = 1 << 20
"""A thousand points of two scores take 300 kB."""

REFERENCE = "vllm_pull_request_21467.json"


def read_figures(path: Path) -> ReportedFigures:
    """The figures in a file.

    Raises:
        CommandError: naming the file, the field and the remedy.
    """
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise CommandError(f"{path} is larger than {LARGEST_BYTES} bytes; samples go without --results-only")
        return parse_figures(path.read_bytes(), origin=str(path))
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


def reference_figures() -> ReportedFigures:
    """The results printed in vLLM pull request 21467, whose lanes are configured by default."""
    return parse_figures((resources.files("driftline") / "data" / REFERENCE).read_bytes(), origin=REFERENCE)


def parse_figures(content: bytes, *, origin: str) -> ReportedFigures:
    """As `read_figures`, from the file's bytes."""
    from pydantic import ValidationError

    try:
        return ReportedFigures.model_validate(json.loads(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise CommandError(f"{origin}: {where}: {first['msg']}; docs/imports.md shows the form") from error
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{origin} is no JSON ({error}); docs/imports.md shows the form") from error
