"""The command line of bubblewrap: what a child sees of this machine. Pure, but for asking whether it works here."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

PROBE_SECONDS = 10
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SETTINGS = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/alternatives", "/etc/passwd",
    "/etc/nsswitch.conf",
)  # fmt: skip
"""No secrets, no host names, no certificates: there is nobody to talk to."""

PROCESSORS = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""What numerical libraries read to count and describe processors: a measurement must not depend on the sandbox."""

NAMESPACES = (
    "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
    "--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--cap-drop", "ALL", "--new-session",
    "--die-with-parent",
)  # fmt: skip


def find() -> Path | None:
    """bubblewrap, if it is installed and this kernel lets this user use it."""
    found = shutil.which("bwrap")
    if found is None:
        return None
    command = arguments(Path(found), readable=[], writable={}, folder=Path("/"), devices=[])
    try:
        answer = subprocess.run([*command, "/usr/bin/true"], capture_output=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Path(found).absolute() if answer.returncode == 0 else None


def arguments(
    program: Path, *, readable: Iterable[Path], writable: dict[Path, Path], folder: Path, devices: Iterable[Path]
) -> list[str]:
    """Everything before the command. `writable` maps a place in the sandbox to the folder that is there.

    Outer places come before inner ones, so that each mount point exists when its turn comes.
    """
    mounts = [(path, ["--ro-bind", str(path), str(path)]) for path in readable]
    mounts += [(place, ["--bind", str(source), str(place)]) for place, source in writable.items()]
    mounts.sort(key=lambda mount: len(mount[0].parts))
    words = [str(program), *NAMESPACES, "--proc", "/proc", "--dev", "/dev", *_system()]
    for device in devices:
        words += ["--dev-bind-try", str(device), str(device)]
    for _, mount in mounts:
        words += mount
    return [*words, "--chdir", str(folder), "--"]


def _system() -> list[str]:
    words = []
    for place in SYSTEM:
        path = Path(place)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), place]
        elif path.exists():
            words += ["--ro-bind", place, place]
    for place in (*SETTINGS, *PROCESSORS):
        words += ["--ro-bind-try", place, place]
    return words
