"""The processes below one of ours, as /proc shows them; engines are known by the title that vLLM gives them."""

import os
import signal
from pathlib import Path

ENGINE_TITLES = ("VLLM::EngineCore", "VLLM::Worker")
CHILD = "evaluate_vllm.py"


def below(root: int) -> dict[int, str]:
    """pid -> command line of everything that `root` started, whatever started it in turn."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError, IndexError):
            continue

    def is_below(pid: int) -> bool:
        while pid > 1:
            pid = parents.get(pid, 0)
            if pid == root:
                return True
        return False

    return {pid: commands[pid] for pid in parents if is_below(pid)}


def engines(root: int) -> set[int]:
    """Processes of vLLM engines below `root`."""
    return {pid for pid, command in below(root).items() if command.startswith(ENGINE_TITLES)}


def children(root: int) -> set[int]:
    """The evaluation children below `root`: the Python that holds an engine, not the walls around it."""
    return {pid for pid, command in below(root).items() if CHILD in command and "--channel-fd" in command and
            command.split()[0].endswith("/python") and "guard.py" not in command}  # fmt: skip


def kill(pid: int) -> None:
    """SIGKILL: no handler of anybody runs."""
    os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    """Whether it runs; a zombie that nobody buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
