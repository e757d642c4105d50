"""Runs `driftline` as a user does: its own process, its own folder."""

import os
import subprocess
import sys
from pathlib import Path

DRIFTLINE = Path(sys.executable).with_name("driftline")


def driftline(*arguments: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRIFTLINE_")}
    return subprocess.run(
        [DRIFTLINE, *arguments],
        cwd=folder,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
