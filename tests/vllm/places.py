"""What all tests of this folder name."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
LANE = "canary vllm V1"
RELEASE = "0.32.0"
