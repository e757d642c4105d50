"""Where the project's own files are: the checkout this package runs from."""

from pathlib import Path

import driftline

ROOT = Path(driftline.__file__).resolve().parents[2]
CONFIG = ROOT / "driftline.toml"
EVAL_PYTHON = ROOT / ".venv-eval" / "bin" / "python"
VLLM_PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
