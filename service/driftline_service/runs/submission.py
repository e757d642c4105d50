"""A planned request becomes rows: run, lanes, jobs, outbox and event in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from driftline.contracts.lane import Lane
from driftline.contracts.words import Layout
from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Commit:
    """One arm's code, resolved: nothing here is looked up again."""

    ref: str
    """as it was asked for: a branch, a tag or a SHA"""
    sha: str
    subject: str
    kernel_path: str
    """the kernels' folder inside the tree, e.g. kernels/src/mamba2_varlen"""
    kernel_tree: str
    """git's tree id of everything that decides what is measured: equal ids are byte-identical code"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A request that was understood: every name is resolved, every lane is known."""

    name: str
    repository_url: str
    main_branch: str
    layout: Layout
    base: Commit
    head: Commit
    lanes: tuple[Lane, ...]
    margin: float
    """of exact_match, as a fraction: 0.025 is two and a half points"""
    created_by: str
    questions: int | None = None
    """asks so many questions on every lane instead of the lane's own number, at most all of the task's"""
    measure_noise: bool = False
    """evaluates both arms afresh, even if they are the same code"""
    unreachable: Mapping[str, str] = field(default_factory=dict)
    """lane name -> why no changed file can reach its backend"""
    idempotency_key: str | None = None


def submit(session: Session, new: NewRun) -> UUID:
    """Write the run in the caller's transaction; the caller commits. The same idempotency key gives the same run again.

    Raises:
        ValueError: if there is no lane, two lanes share a name, or `questions` is below 1.
    """
    raise NotImplementedError
