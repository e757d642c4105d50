"""What a process and all below it use, read from /proc. Processes that vanish meanwhile count nothing."""

from dataclasses import dataclass
from pathlib import Path

KIBIBYTE = 1024


@dataclass(frozen=True, slots=True)
class TreeUsage:
    """`memory_bytes` counts anonymous and shared-memory pages, not mapped files. Pages that forked processes still share
    count for each of them: an upper bound, read fast. `exact_bytes` counts them once."""

    pids: tuple[int, ...]
    memory_bytes: int

    @property
    def processes(self) -> int:
        return len(self.pids)

    def exact_bytes(self) -> int:
        """Walks page tables: milliseconds a gigabyte, so only for who seems to use too much."""
        return sum(_proportional_memory_of(pid) for pid in self.pids)


def usage_below(root: int) -> TreeUsage:
    """Usage of `root` and its descendants."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    tree, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        tree.append(pid)
        waiting += children.get(pid, [])
    return TreeUsage(tuple(tree), sum(_memory_of(pid) for pid in tree))


def _parents() -> list[tuple[int, int]]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "stat").read_bytes()
            found.append((int(entry.name), int(status.rpartition(b")")[2].split()[1])))
        except (OSError, ValueError, IndexError):
            continue
    return found


def _memory_of(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 0
    wanted = ("RssAnon:", "RssShmem:", "VmSwap:")
    return sum(int(line.split()[1]) * KIBIBYTE for line in lines if line.startswith(wanted))


def _proportional_memory_of(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # gone, or a kernel without it
        return _memory_of(pid)
    wanted = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")
    return sum(int(line.split()[1]) * KIBIBYTE for line in lines if line.startswith(wanted))
