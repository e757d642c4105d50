"""The only place that starts git: argument lists, a closed environment, a deadline. Answers are not read here."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from driftline.git.credential import Handed, handed_over
from driftline.git.errors import GitError

LOCAL_SECONDS = 60.0
"""Reading a commit's tree of a large repository takes a second or two."""

NETWORK_SECONDS = 900.0
"""A first fetch of a repository of half a gigabyte over a slow line."""

PROBE_SECONDS = 60.0
"""Asking a server for its HEAD."""

FAREWELL_SECONDS = 2.0
"""git removes its temporary files within milliseconds."""

NO_SPACE = ("No space left on device", "Disk quota exceeded")

_SETTINGS = (
    "protocol.ext.allow=never",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "gc.autoDetach=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=30",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "safe.directory=*",
)
_INHERITED = (
    "PATH",
    "HOME",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
)


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace").strip()


@dataclass(frozen=True, slots=True)
class Git:
    """git on one bare repository.

    `protocols` is git's own allow-list; `configuration` is a file of settings that also reach the other end of a local
    fetch.
    """

    folder: Path
    protocols: str
    configuration: Path

    def ask(self, *arguments: str, seconds: float = LOCAL_SECONDS, said: bytes | None = None) -> Answer:
        """Run and return, whatever git's exit code. `said` is what it reads on standard input.

        Raises:
            GitError: git_timeout, or git_failed if git is not installed.
        """
        with handed_over(arguments[0]) as handed:
            return self._answer(arguments, handed, seconds, said)

    def _answer(self, arguments: Sequence[str], handed: Handed, seconds: float, said: bytes | None) -> Answer:
        options = (*_options(), *handed.options)
        command = ["git", "--git-dir", str(self.folder), "--literal-pathspecs", *options, *arguments]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL if said is None else subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=self._environment(), cwd="/", start_new_session=True,
                pass_fds=handed.descriptors,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise GitError("git_failed", "git is not installed; install it, e.g. apt-get install git") from error
        with process:
            out, err = _communicate(process, arguments, seconds, said)
        return Answer(process.returncode, out, err.decode("utf-8", "replace").strip())

    def get(self, *arguments: str, seconds: float = LOCAL_SECONDS) -> Answer:
        """Run what must succeed.

        Raises:
            GitError: git_failed, git_timeout.
        """
        answer = self.ask(*arguments, seconds=seconds)
        if answer.code != 0:
            self.blame_this_side(answer.err)
            raise GitError("git_failed", f"git {arguments[0]} failed in {self.folder.name}: {answer.err[-500:]}")
        return answer

    def blame_this_side(self, said: str) -> None:
        """Raises GitError if what git says on stderr tells of this machine and not of the repository asked for.

        Raises:
            GitError: disk_full, or git_failed if a lock file is in the way.
        """
        if any(sign in said for sign in NO_SPACE):
            raise GitError("disk_full", f"no space is left for {self.folder.parent}; free some and try again")
        if ".lock': File exists" in said:
            raise GitError(
                "git_failed", f"another git is at work in {self.folder}, or was killed there; try again in a minute"
            )

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return kept | {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "/bin/false",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self.configuration),
            "GIT_ALLOW_PROTOCOL": self.protocols,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=20",
        }


def _options() -> Sequence[str]:
    return [word for setting in _SETTINGS for word in ("-c", setting)]


def _communicate(
    process: "subprocess.Popen[bytes]", arguments: Sequence[str], seconds: float, said: bytes | None
) -> tuple[bytes, bytes]:
    try:
        return process.communicate(said, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        for number in (signal.SIGTERM, signal.SIGKILL):  # the first lets it take its lock files away
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)  # its helpers, too
            with suppress(subprocess.TimeoutExpired):
                process.wait(FAREWELL_SECONDS)
        raise GitError(
            "git_timeout", f"git {arguments[0]} took longer than {seconds:.0f} s; try again later"
        ) from error
