"""Starts the worker's local commands, which need no server. The command line never imports the worker."""

import os
import sys
from typing import NoReturn


def become(command: str, *, repo: str, commit: str, as_json: bool) -> NoReturn:
    """Replace this process by `python -m driftline_worker.local COMMAND`; its exit code is ours."""
    arguments = [sys.executable, "-P", "-m", "driftline_worker.local", command, "--repo", repo, "--commit", commit]
    arguments += ["--json"] if as_json else []
    os.execv(arguments[0], arguments)  # noqa: S606 - an argument list, no shell
