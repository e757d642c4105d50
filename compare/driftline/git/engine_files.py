"""What of a commit of vLLM an engine is made of, and which release it is nearest to. Read from a mirror, without a checkout."""

import hashlib
import tomllib
from collections.abc import Iterable

from driftline.git.errors import GitError
from driftline.git.mirror import Mirror
from driftline.git.names import checked_sha

PACKAGE = "vllm"
"""The Python tree."""

COMPILED = (
    "csrc/", "cmake/", "CMakeLists.txt", "vllm_flash_attn/", "rust/", "rust-toolchain.toml", "build_rust.sh", "setup.py",
    "requirements/build",
)  # fmt: skip
"""What a build compiles, and what tells it how. `requirements/build` is a file in older commits and a folder in newer ones."""

PROJECT = "pyproject.toml"
"""Of this the table [build-system] alone: the rest is linters' and the index's."""

BESIDE = frozenset({"tests", "docs", "examples", "benchmarks", "docker"})
"""Folders at the root that no build reads; they are a third of the tree."""


def compiled_among(paths: Iterable[str]) -> list[str]:
    """Those of some files that decide what a build compiles, pyproject.toml apart."""
    return [path for path in paths if path.startswith(COMPILED)]


def compiled_changes(mirror: Mirror, release: str, sha: str) -> list[str]:
    """The files by which two commits (full SHAs) would be compiled otherwise; none: one's extension modules serve both."""
    changed = mirror.changed_paths(release, sha)
    build = PROJECT in changed and _build_system(mirror, release) != _build_system(mirror, sha)
    return compiled_among(changed) + ([f"{PROJECT} [build-system]"] if build else [])


def engine_id(mirror: Mirror, sha: str) -> str:
    """40 hexadecimal digits: equal ids mean the same Python tree, compiled from the same sources in the same way."""
    names = [PACKAGE, *(name.rstrip("/") for name in COMPILED), "requirements/build.txt"]
    answer = mirror.git.get("ls-tree", "-z", "--full-tree", "--end-of-options", checked_sha(sha), *names)
    build = repr(_build_system(mirror, sha)).encode()
    return hashlib.sha1(answer.out + build, usedforsecurity=False).hexdigest()


def build_files(mirror: Mirror, sha: str) -> list[str]:
    """The names at a commit's root that a full build may need."""
    answer = mirror.git.get("ls-tree", "-z", "--name-only", "--full-tree", "--end-of-options", checked_sha(sha))
    names = answer.out.decode("utf-8", "surrogateescape").split("\0")
    return [name for name in names if name and name not in BESIDE and not name.startswith(".")]


def build_id(mirror: Mirror, sha: str) -> str:
    """40 hexadecimal digits over all that a full build can read: a build may run any file of its tree, so that less would let
    one commit's build answer for another's."""
    answer = mirror.git.get(
        "ls-tree", "-z", "--full-tree", "--end-of-options", checked_sha(sha), *build_files(mirror, sha)
    )
    return hashlib.sha1(answer.out, usedforsecurity=False).hexdigest()


def release_commit(mirror: Mirror, release: str) -> str | None:
    """The commit that a release was made from; None if the repository has no such tag."""
    try:
        return mirror.resolve(f"v{release}")
    except GitError as error:
        if error.reason != "unknown_commit":
            raise
        return None


def releases_by_nearness(mirror: Mirror, sha: str, releases: Iterable[str]) -> list[str]:
    """Of some releases those whose tag is here, best first: those that this commit can use as they are compiled, then by the
    number of commits on either side since the two parted."""

    def rank(release: str) -> tuple[bool, int]:
        tagged = found[release]
        apart = mirror.git.get("rev-list", "--count", "--end-of-options", f"{tagged}...{checked_sha(sha)}")
        return bool(compiled_changes(mirror, tagged, sha)), int(apart.text)

    commits = {release: release_commit(mirror, release) for release in releases}
    found = {release: commit for release, commit in commits.items() if commit is not None}
    return sorted(found, key=rank)


def _build_system(mirror: Mirror, sha: str) -> object:
    """The table as written; the whole text where it is no TOML, None without the file."""
    answer = mirror.git.ask("cat-file", "blob", f"{checked_sha(sha)}:{PROJECT}")
    if answer.code != 0:
        return None
    text = answer.out.decode("utf-8", "replace")
    try:
        return tomllib.loads(text).get("build-system")
    except tomllib.TOMLDecodeError:
        return text
