"""The vLLM of a commit as a folder on this disk: its Python tree, for a release's compiled parts, or all of it, built."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from driftline.contracts.jobs import CommitSource
from driftline.contracts.lane import EngineEnvironment
from driftline.git import Mirror
from driftline.git.engine_files import PACKAGE, build_id

from driftline_worker.checkout import ENGINE_FOLDER, told_as_reason
from driftline_worker.engine_cache import cached_engine
from driftline_worker.engine_sources import changed_sources, refuse_compiled_changes
from driftline_worker.settings import ChildSettings

CHECKOUT_SECONDS = 300.0
"""A checkout takes a second; who waits for another's waits no longer than a fetch may take."""

Build = Callable[[Mirror, Path], None]
"""Builds a commit in full, given its mirror and the folder that is to hold its package. Raises NotBuilt."""


@dataclass(frozen=True, slots=True)
class EngineTree:
    """`folder` holds the package; `built` tells whether its compiled parts are the commit's too."""

    folder: Path
    built: bool


@contextmanager
def engine_tree(
    source: CommitSource, wanted: EngineEnvironment, *, settings: ChildSettings, identity: str, build: Build
) -> Iterator[EngineTree]:
    """The commit's vLLM, kept on disk while the block runs. `identity` is the environment's, in which it would be built.

    Raises:
        CannotRun: with git's reason, or unsupported if the release's compiled parts cannot stand for the commit's and no
            build is configured.
        NotBuilt: what ended the build.
    """
    with told_as_reason():
        mirror = Mirror.open(settings.mirrors, source.url, allow_local=settings.allow_local_repositories)
        mirror.fetch()
        mirror.fetch_commit(source.sha)
        changed = changed_sources(mirror, source, wanted.vllm)
        in_full = changed != [] and bool(wanted.build)
        if not in_full:
            refuse_compiled_changes(changed, source, wanted.vllm)
        name = _name(mirror, source.sha, [identity, *wanted.build] if in_full else None)

    def make(folder: Path) -> None:
        if in_full:
            build(mirror, folder)
        else:
            mirror.extract(source.sha, ENGINE_FOLDER, folder)

    patience = CHECKOUT_SECONDS + (wanted.build_seconds if in_full else 0.0)
    with told_as_reason(), cached_engine(settings.engines, name, make, patience_seconds=patience) as folder:
        yield EngineTree(folder, in_full)


def _name(mirror: Mirror, sha: str, built_with: list[str] | None) -> str:
    """What tells the content: of Python alone git's own id, of a build all that goes into it."""
    if built_with is None:
        return f"python-{mirror.tree_id(sha, PACKAGE) or 'none'}"
    words = "\0".join([build_id(mirror, sha), *built_with])
    return f"built-{hashlib.sha256(words.encode()).hexdigest()[:40]}"
