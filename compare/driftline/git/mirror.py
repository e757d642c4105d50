"""A bare mirror of one repository in a cache folder: fetched under a lock, read by SHA. Who asks is not known here."""

import hashlib
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from driftline.git import archive
from driftline.git.borrowed import REMOTE_HEAD, objects_of, packed_refs
from driftline.git.command import NETWORK_SECONDS, PROBE_SECONDS, Answer, Git
from driftline.git.commit_info import FORMAT, CommitInfo, parse_commit
from driftline.git.errors import GitError
from driftline.git.file_lock import locked, remove_left_locks
from driftline.git.kernels import Kernels, foreign_kernels_in, kernels_in
from driftline.git.names import Url, checked_path, checked_ref, checked_sha, is_full_sha, may_be_sha, parse_url

REMOTE_PROTOCOLS = "https:http:ssh"
LOCAL_PROTOCOLS = "file"
REFSPECS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", "+refs/pull/*/head:refs/pull/*/head")
USUAL_BRANCHES = ("main", "master", "trunk")
LARGEST_FOLDER_BYTES = 64 << 20
"""Kernel folders are below 1 MB; more is an attempt to fill the disk."""

NO_REPOSITORY = (
    "does not appear to be a git repository",
    "not valid: is this a git repository",
    "not a git repository",
)

EMPTY_TAR = bytes(10_240)
"""Two blocks of zeros end an archive; git pads it to twenty."""

ATTRIBUTES = "* -export-ignore -export-subst -text -eol -ident -filter -working-tree-encoding\n"
"""Beats every .gitattributes of the tree: what is checked out is what the tree id says, byte for byte."""

CONFIGURATION = "[safe]\n\tdirectory = *\n"
"""A repository of another user may be read: git runs no hook of it, and no program that its configuration names."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """Two processes may share one: fetches take turns, reads need no lock."""

    url: Url
    git: Git

    @classmethod
    def open(cls, cache: Path, url: str, *, allow_local: bool = True) -> Self:
        """The mirror of `url` below `cache`, made if it is not there; nothing is fetched.

        Raises:
            GitError: bad_url.
        """
        parsed = parse_url(url)
        if parsed.local and not allow_local:
            raise GitError("bad_url", f"{url!r} is a folder, and only URLs are read here; push it and give its URL")
        folder = cache.absolute() / f"{hashlib.sha256(parsed.address.encode()).hexdigest()}.git"
        protocols = LOCAL_PROTOCOLS if parsed.local else REMOTE_PROTOCOLS
        git = Git(folder, protocols, folder / "driftline.gitconfig")
        mirror = cls(parsed, git)
        if not (folder / "driftline.gitconfig").exists():
            mirror._create()
        return mirror

    def fetch(self) -> None:
        """Bring all branches, tags and pull requests up to date.

        Raises:
            GitError: unreachable_repository, not_a_repository, git_timeout.
        """
        with self._lock():
            remove_left_locks(self.git.folder)
            head = self._ask_remote(
                "ls-remote", "--symref", "--end-of-options", self.url.address, "HEAD", seconds=PROBE_SECONDS
            )
            specs = (*REFSPECS, f"+HEAD:{REMOTE_HEAD}") if head.text else REFSPECS
            self._fetch("--prune", *specs)
            self._follow_head(head.text)

    def borrow(self) -> None:
        """Read a folder on this machine in place: its branches and tags as they are now, its objects without a copy.

        For one look at a commit, also of a repository that lacks objects no kernel needs; a commit is here only as
        long as it is there. Never fetch() into the same mirror.

        Raises:
            GitError: unreachable_repository, not_a_repository.
        """
        with self._lock():
            patterns = ("HEAD", "refs/heads/*", "refs/tags/*", "refs/pull/*/head")
            listed = self._ask_remote(
                "ls-remote", "--end-of-options", self.url.address, *patterns, seconds=PROBE_SECONDS
            ).text
            alternates = self.git.folder / "objects" / "info" / "alternates"
            alternates.write_text(f"{objects_of(Path(self.url.address), self.git)}\n", encoding="utf-8")
            partial = self.git.folder / "packed-refs.new"
            partial.write_text(packed_refs(listed), encoding="utf-8")
            partial.rename(self.git.folder / "packed-refs")

    def fetch_commit(self, sha: str) -> None:
        """Make sure one commit is here and stays, even if no branch leads to it any more.

        Raises:
            GitError: unknown_commit, and what fetch() raises.
        """
        keep = f"refs/driftline/kept/{checked_sha(sha)}"
        with self._lock():
            remove_left_locks(self.git.folder)
            if not self._has(sha):
                self._fetch_or_unknown(sha, f"+{sha}:{keep}")
            self.git.get("update-ref", keep, sha)

    def resolve(self, ref: str) -> str:
        """The full SHA of a branch, tag, pull/N/head, short or full SHA, or HEAD.

        Raises:
            GitError: bad_ref, unknown_commit.
        """
        checked_ref(ref)
        names = [f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/{ref}"]
        if ref == "HEAD" or ref.startswith(("HEAD^", "HEAD~")):
            names.insert(0, f"{REMOTE_HEAD}{ref.removeprefix('HEAD')}")
        if may_be_sha(ref):
            names.insert(0 if is_full_sha(ref) else len(names), ref)
        for name in names:
            answer = self.git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            if answer.code == 0:
                return checked_sha(answer.text)
        raise self._unknown(ref)

    def default_branch(self) -> str:
        """The branch that the other side's HEAD names, else main, master, trunk, or the only one there is.

        Raises:
            GitError: no_default_branch.
        """
        head = self.git.ask("symbolic-ref", "--quiet", "--short", "HEAD").text
        branches = self.git.get("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/").text.splitlines()
        candidates = [name for name in (head, *USUAL_BRANCHES) if name in branches]
        if candidates:
            return candidates[0]
        if len(branches) == 1:
            return branches[0]
        raise GitError("no_default_branch", f"{self.url.shown} names no main branch; give the base commit yourself")

    def merge_base(self, first: str, second: str) -> str:
        """The commit where two commits parted.

        Raises:
            GitError: no_merge_base.
        """
        answer = self.git.ask("merge-base", "--end-of-options", checked_sha(first), checked_sha(second))
        if answer.code != 0:
            raise GitError(
                "no_merge_base", f"{first[:12]} and {second[:12]} have no common history; name a base commit"
            )
        return checked_sha(answer.text.splitlines()[0])

    def is_ancestor(self, first: str, second: str) -> bool:
        """Is `first` part of `second`'s history?"""
        return self.git.ask("merge-base", "--is-ancestor", checked_sha(first), checked_sha(second)).code == 0

    def merge_conflicts(self, onto: str, head: str) -> list[str]:
        """Files in which `head` could not be merged into `onto` without a person; [] if it can, or nobody can tell.

        Nothing is checked out; the trial merge leaves a tree in the mirror that nothing names.
        """
        options = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z")
        answer = self.git.ask(*options, checked_sha(onto), checked_sha(head))
        return _names(answer.out)[1:] if answer.code == 1 else []

    def first_parents(self, good: str, bad: str) -> list[str]:
        """The commits that came after `good` on the line of first parents up to `bad` and with it, oldest first."""
        wanted = (checked_sha(bad), f"^{checked_sha(good)}")
        answer = self.git.get("rev-list", "--first-parent", "--reverse", "--end-of-options", *wanted)
        return [checked_sha(line) for line in answer.text.splitlines()]

    def tree_id(self, sha: str, path: str) -> str | None:
        """The id of the folder `path` in a commit, None if it has no such folder. Equal ids mean equal bytes."""
        for mode, kind, oid, _ in self._entries(sha, checked_path(path)):
            if kind == "tree" and mode == "040000":
                return oid
        return None

    def changed_paths(self, base: str, head: str) -> list[str]:
        """Files that differ; a renamed file counts under both names."""
        options = ("-r", "-z", "--name-only", "--no-renames", "--no-ext-diff")
        answer = self.git.get("diff-tree", *options, "--end-of-options", checked_sha(base), checked_sha(head))
        return _names(answer.out)

    def find_kernels(self, sha: str, *, foreign: bool = False) -> Kernels | None:
        """The commit's Mamba2 kernels, None if it has none; `foreign` ones too, which can be checked but not run."""
        answer = self.git.get("ls-tree", "-r", "-z", "--name-only", "--full-tree", "--end-of-options", checked_sha(sha))
        paths = _names(answer.out)
        return kernels_in(paths) or (foreign_kernels_in(paths) if foreign else None)

    def commit_info(self, sha: str) -> CommitInfo:
        """Raises GitError (unknown_commit) if the commit is not here."""
        if not self._has(checked_sha(sha)):
            raise self._unknown(sha)
        return parse_commit(self.git.get("show", "-s", "--no-show-signature", f"--format={FORMAT}", sha).text)

    def extract(self, sha: str, path: str, destination: Path) -> Path:
        """Unpack one folder of a commit as `destination`/<its last name>, which must not exist, and return that path.

        Raises:
            GitError: no_kernels if the commit has no such folder, unsafe_tree.
        """
        path = checked_path(path)
        if self.tree_id(sha, path) is None:
            raise GitError(
                "no_kernels", f"commit {sha[:12]} of {self.url.shown} has no folder {path}; choose another commit"
            )
        size = sum(int(size) for _, _, _, size in self._entries(sha, path, "-r", "-l") if size.isdigit())
        if size > LARGEST_FOLDER_BYTES:
            raise GitError(
                "unsafe_tree", f"{path} holds {size >> 20} MB; a kernel folder may hold {LARGEST_FOLDER_BYTES >> 20}"
            )
        data = self.git.get("archive", "--format=tar", f"{sha}:{path}").out
        unpacked = destination / path.rpartition("/")[2]
        archive.unpack(data, unpacked)
        return unpacked

    def extract_paths(self, sha: str, paths: Iterable[str], destination: Path) -> Path:
        """Unpack files and folders of a commit at their own places below `destination`, which must not exist.

        Paths that the commit does not have are left out. Raises GitError: bad_ref, unsafe_tree.
        """
        there = [path for path in dict.fromkeys(map(checked_path, paths)) if self.has_path(sha, path)]
        sizes = (size for path in there for _, _, _, size in self._entries(sha, path, "-r", "-l"))
        size = sum(int(size) for size in sizes if size.isdigit())
        if size > LARGEST_FOLDER_BYTES:
            raise GitError(
                "unsafe_tree", f"{', '.join(there)} hold {size >> 20} MB; {LARGEST_FOLDER_BYTES >> 20} are unpacked"
            )
        data = self.git.get("archive", "--format=tar", checked_sha(sha), "--", *there).out if there else EMPTY_TAR
        archive.unpack(data, destination)
        return destination

    def has_path(self, sha: str, path: str) -> bool:
        """Whether a commit has this file or folder."""
        return bool(self._entries(sha, checked_path(path)))

    def _create(self) -> None:
        self.git.folder.parent.mkdir(parents=True, exist_ok=True)
        with self._lock():
            if self.git.configuration.exists():
                return
            self.git.folder.mkdir(exist_ok=True)
            self.git.get("init", "--bare", "--quiet", "--template=")
            (self.git.folder / "info").mkdir(exist_ok=True)
            (self.git.folder / "info" / "attributes").write_text(ATTRIBUTES, encoding="utf-8")
            partial = self.git.configuration.with_suffix(".new")
            partial.write_text(CONFIGURATION, encoding="utf-8")
            partial.rename(self.git.configuration)  # the last step: a mirror without it is made again

    def _lock(self) -> AbstractContextManager[None]:
        return locked(self.git.folder.with_suffix(".lock"), seconds=NETWORK_SECONDS)

    def _fetch(self, *words: str) -> None:
        options = ("--force", "--no-tags", "--quiet", "--no-write-fetch-head", "--no-recurse-submodules")
        prune = [word for word in words if word.startswith("--")]
        specs = [word for word in words if not word.startswith("--")]
        self._ask_remote(
            "fetch", *options, *prune, "--end-of-options", self.url.address, *specs, seconds=NETWORK_SECONDS
        )

    def _fetch_or_unknown(self, sha: str, spec: str) -> None:
        """Ask for the commit itself; a server that gives only what branches name is asked for all of them."""
        try:
            self._fetch(spec)
        except GitError as error:
            if error.reason != "git_failed":
                raise
            self._fetch(*REFSPECS)
            if not self._has(sha):
                raise self._unknown(sha) from error

    def _ask_remote(self, *arguments: str, seconds: float) -> Answer:
        answer = self.git.ask(*arguments, seconds=seconds)
        if answer.code != 0:
            self.git.blame_this_side(answer.err)
            raise _remote_error(self.url, answer.err)
        return answer

    def _follow_head(self, symref: str) -> None:
        first = symref.splitlines()[0] if symref else ""
        if first.startswith("ref: refs/heads/"):
            self.git.get("symbolic-ref", "HEAD", first.removeprefix("ref: ").split("\t")[0])

    def _has(self, sha: str) -> bool:
        return self.git.ask("cat-file", "-e", f"{sha}^{{commit}}").code == 0

    def _entries(self, sha: str, path: str, *options: str) -> list[tuple[str, str, str, str]]:
        """(mode, kind, id, size) of what lies at `path`."""
        answer = self.git.get("ls-tree", "-z", "--full-tree", *options, checked_sha(sha), "--", path)
        heads = [entry.split("\t", 1)[0].split() for entry in _names(answer.out)]
        return [(mode, kind, oid, rest[0] if rest else "") for mode, kind, oid, *rest in heads]

    def _unknown(self, ref: str) -> GitError:
        return GitError("unknown_commit", f"{self.url.shown} has no commit {ref!r}; push it, or check its spelling")


def open_mirror(cache: Path, url: str, *, allow_local: bool) -> Mirror:
    """As Mirror.open, for callers that must say whether folders on this machine may be read."""
    return Mirror.open(cache, url, allow_local=allow_local)


def _names(out: bytes) -> list[str]:
    return [name for name in out.decode("utf-8", "surrogateescape").split("\0") if name]


def _remote_error(url: Url, said: str) -> GitError:
    """What git said on stderr, as one of our reasons."""
    if "not our ref" in said or "couldn't find remote ref" in said:
        return GitError("git_failed", said[-300:])
    what = said.splitlines()[-1][:300] if said else "no answer"
    if url.local and not Path(url.address).exists():
        return GitError("unreachable_repository", f"{url.shown} does not exist; give the folder of a git repository")
    if any(sign in said for sign in NO_REPOSITORY):
        return GitError("not_a_repository", f"{url.shown} is no git repository; give the address of one")
    return GitError("unreachable_repository", f"{url.shown} cannot be read ({what}); check the URL and its permissions")
