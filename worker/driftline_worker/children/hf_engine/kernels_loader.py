"""Imports the kernels at the commit under test, and says which of their modules served an operator."""

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from .refusal import permanent

PACKAGE = "mamba2_varlen"
OPERATORS = ("ssd_prefill", "causal_conv1d_prefill", "causal_conv1d_update", "selective_state_update")
NEEDED = (*OPERATORS, "build_metadata")


def load_kernels(import_dir: Path) -> ModuleType:
    """`mamba2_varlen` from `import_dir` and nowhere else.

    To be called after torch, transformers and lm-eval are imported: afterwards the folder stands last on the import
    path, so that no file of the commit can shadow them or what they import later.

    Raises Refusal: kernels_do_not_import, kernels_incomplete.
    """
    if PACKAGE in sys.modules:
        raise permanent(
            "kernels_do_not_import", f"{PACKAGE} was imported before the commit's folder was named; this is a bug"
        )
    sys.path.insert(0, str(import_dir))
    importlib.invalidate_caches()
    try:
        kernels = importlib.import_module(PACKAGE)
    except (Exception, SystemExit) as error:
        raise permanent("kernels_do_not_import", f"import {PACKAGE}: {brief_traceback(error)}") from error
    finally:
        sys.path.remove(str(import_dir))
        sys.path.append(str(import_dir))
    _check_origin(kernels, import_dir)
    if missing := [name for name in NEEDED if not callable(getattr(kernels, name, None))]:
        raise permanent(
            "kernels_incomplete", f"{PACKAGE} at this commit lacks {', '.join(missing)}; engine hf calls them"
        )
    return kernels


def serving_module(kernels: ModuleType, operator: str, backend: str) -> str:
    """Module and file, relative to the import folder, that defines `operator` for `backend`, of those now imported."""
    found = [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith(f"{PACKAGE}.{backend}") and _defines(module, operator)
    ]
    module = found[0] if found else sys.modules[getattr(kernels, operator).__module__]
    file = Path(str(module.__file__)).resolve()
    root = Path(str(kernels.__file__)).resolve().parent.parent
    return f"{module.__name__} ({file.relative_to(root) if file.is_relative_to(root) else file.name})"


def brief_traceback(error: BaseException, frames: int = 6) -> str:
    """The exception and its last frames, files by name only: enough to find the line, no path of this machine."""
    last = traceback.extract_tb(error.__traceback__)[-frames:]
    places = [f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}" for frame in last]
    return "\n".join([f"{type(error).__name__}: {error}", *places])


def _check_origin(kernels: ModuleType, import_dir: Path) -> None:
    file = getattr(kernels, "__file__", None)
    if file is None or not Path(file).resolve().is_relative_to(import_dir.resolve()):
        raise permanent(
            "kernels_do_not_import",
            f"{PACKAGE} came from {file or 'a folder without __init__.py'}, not from the commit's import folder",
        )


def _defines(module: ModuleType, operator: str) -> bool:
    function = getattr(module, operator, None)
    return getattr(function, "__module__", None) == module.__name__
