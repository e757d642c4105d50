"""A bisect request becomes a search: both commits are resolved, and what lies between is listed and looked at."""

from dataclasses import dataclass

from driftline.contracts.base import Contract, Name
from driftline.contracts.bisect import BisectCommit
from driftline.contracts.lane import Lane
from driftline.contracts.words import Layout
from driftline.git import GitError, Mirror
from pydantic import Field

from driftline_service.intake.engine_choice import in_nearest_environments
from driftline_service.intake.measured_tree import measured_tree
from driftline_service.intake.plan import LONGEST_NAME, STATUS, choose_lanes, pinned
from driftline_service.intake.refusal import Refusal
from driftline_service.intake.request import DEFAULT_MARGIN, RepositoryUrl, Revision, SubmitRequest
from driftline_service.lanes import Lanes
from driftline_service.settings import Settings

MOST_COMMITS = 500
"""Each is looked at before the search begins, in some 50 ms; a client waits 60 s."""


class BisectRequest(Contract):
    """From which commit on is a lane worse than at `good`?"""

    repo: RepositoryUrl
    good: Revision
    bad: Revision
    lane: Name
    questions: int | None = Field(default=None, ge=1, description="Ask fewer questions than the lane does")
    margin: float = Field(default=DEFAULT_MARGIN, gt=0, le=1)


@dataclass(frozen=True, slots=True)
class NewBisect:
    """A request that was understood."""

    repository_url: str
    main_branch: str
    layout: Layout
    good: BisectCommit
    commits: tuple[BisectCommit, ...]
    lane: Lane
    margin: float


def plan(request: BisectRequest, *, lanes: Lanes, settings: Settings) -> NewBisect:
    """Understand a request completely, or refuse it.

    Raises:
        Refusal: as a run's; not_an_ancestor, nothing_between, too_many_commits, unusable_commit.
    """
    as_run = SubmitRequest(
        repo=request.repo, head=request.bad, base=request.good, lanes=[request.lane], questions=request.questions
    )
    (lane,) = choose_lanes(as_run, lanes)
    if as_run.local and not settings.allow_local_repositories:
        raise Refusal(
            "local_repository", f"{request.repo} is not a URL, and this service reads no local folders", status=403
        )
    if request.questions is not None:
        lane = lane.model_copy(update={"questions": request.questions})
    try:
        mirror = Mirror.open(settings.mirrors_dir, request.repo)
        mirror.fetch()
        return _planned(request, mirror, lane, lanes)
    except GitError as error:
        raise Refusal(error.reason, str(error), status=STATUS.get(error.reason, 422)) from error


def _planned(request: BisectRequest, mirror: Mirror, lane: Lane, known: Lanes) -> NewBisect:
    good, bad = pinned(mirror, request.good), pinned(mirror, request.bad)
    if not mirror.is_ancestor(good, bad):
        raise Refusal(
            "not_an_ancestor", f"{request.good} is no ancestor of {request.bad}; name a good commit before it"
        )
    between = mirror.first_parents(good, bad)
    if not between:
        raise Refusal("nothing_between", f"{request.good} and {request.bad} are one commit; name two")
    if len(between) > MOST_COMMITS:
        raise Refusal("too_many_commits", f"{len(between)} commits lie between; at most {MOST_COMMITS} are searched")
    kernels = mirror.find_kernels(good)
    if kernels is None:
        raise Refusal("no_kernels", f"commit {good} has no Mamba2 kernels; name a good commit that has")
    (lane,) = in_nearest_environments(
        [lane], known.environments, mirror=mirror, sha=good, layout=kernels.layout
    )  # fmt: skip
    start = _commit(mirror, good, kernels.layout)
    commits = tuple(_commit(mirror, sha, kernels.layout) for sha in between)
    if (why := commits[-1].unusable) is not None:
        raise Refusal("unusable_commit", f"{request.bad}: {why}; name a bad commit that can be measured")
    return NewBisect(
        repository_url=request.repo, main_branch=mirror.default_branch(), layout=kernels.layout, good=start,
        commits=commits, lane=lane, margin=request.margin,
    )  # fmt: skip


def _commit(mirror: Mirror, sha: str, layout: Layout) -> BisectCommit:
    subject = mirror.commit_info(sha).subject[:LONGEST_NAME]
    kernels = mirror.find_kernels(sha)
    if kernels is None or not kernels.path.isprintable():
        return BisectCommit(sha=sha, subject=subject, unusable="it has no Mamba2 kernels")
    if kernels.layout is not layout:
        return BisectCommit(sha=sha, subject=subject, unusable=f"it keeps its kernels as {kernels.layout}")
    return BisectCommit(
        sha=sha, subject=subject, kernel_path=kernels.path, kernel_tree=measured_tree(mirror, sha, kernels)
    )
