"""A submit request becomes a NewRun: the repository is fetched, names become commits, kernels and lanes are found."""

from driftline.contracts.impact import ImpactView
from driftline.contracts.kernel_jobs import Suite
from driftline.contracts.lane import Lane
from driftline.git import GitError, Kernels, Mirror
from driftline.git.names import is_full_sha
from driftline.impact.asked import bounded_impact

from driftline_service.intake.engine_choice import in_nearest_environments
from driftline_service.intake.measured_tree import measured_tree
from driftline_service.intake.reach import unreachable_lanes
from driftline_service.intake.refusal import Refusal
from driftline_service.intake.request import SubmitRequest
from driftline_service.lanes import Lanes
from driftline_service.logs import logger
from driftline_service.runs.submission import Commit, NewRun
from driftline_service.settings import Settings

LONGEST_NAME = 200
_log = logger("driftline.intake")

STATUS = {"git_timeout": 504, "git_failed": 502, "disk_full": 507}
"""What is not the caller's mistake: the repository's server, git itself, or this machine's disk."""


def plan(request: SubmitRequest, *, lanes: Lanes, settings: Settings, idempotency_key: str | None = None) -> NewRun:
    """Understand a request completely, or refuse it.

    Raises:
        Refusal: with a reason code; the message names the input and the remedy.
    """
    chosen = choose_lanes(request, lanes)
    if request.local and not settings.allow_local_repositories:
        raise Refusal(
            "local_repository", f"{request.repo} is not a URL, and this service reads no local folders", status=403
        )
    try:
        mirror = Mirror.open(settings.mirrors_dir, request.repo)
        mirror.fetch()
        return _planned(request, mirror, chosen, lanes, idempotency_key)
    except GitError as error:
        raise Refusal(error.reason, str(error), status=STATUS.get(error.reason, 422)) from error


def choose_lanes(request: SubmitRequest, lanes: Lanes) -> tuple[Lane, ...]:
    """The lanes asked for, else the default ones.

    Raises:
        Refusal: unknown_lane, duplicate_lane or too_many_questions.
    """
    names = request.lanes or list(lanes.default_names)
    chosen = []
    for name in names:
        lane = lanes.named(name)
        if lane is None:
            raise Refusal("unknown_lane", f"there is no lane {name!r}; there are {', '.join(map(repr, lanes.names))}")
        if request.questions is not None and request.questions > lane.task.total_questions:
            total = lane.task.total_questions
            raise Refusal("too_many_questions", f"questions {request.questions}: lane {name!r} can ask 1 to {total}")
        chosen.append(lane)
    if len(set(names)) < len(names):
        raise Refusal("duplicate_lane", f"each lane once, please; got {', '.join(names)}")
    return tuple(chosen)


def _planned(request: SubmitRequest, mirror: Mirror, lanes: tuple[Lane, ...], known: Lanes, key: str | None) -> NewRun:
    main = mirror.default_branch()
    head_sha = pinned(mirror, request.head)
    base_ref, base_sha = _base(request, mirror, head_sha, request.target or main)
    if base_sha == head_sha and not request.measure_noise:
        raise Refusal("same_commit", f"base and head are both {head_sha}; measure_noise asks for such a run")
    base_kernels, head_kernels = _kernels(mirror, base_sha), _kernels(mirror, head_sha)
    if base_kernels.layout is not head_kernels.layout:
        raise Refusal(
            "layouts_differ",
            f"{base_sha[:12]} keeps its kernels as {base_kernels.layout}, {head_sha[:12]} as {head_kernels.layout}; "
            "choose a base of the same layout",
        )
    lanes = in_nearest_environments(
        lanes, known.environments, mirror=mirror, sha=base_sha, layout=base_kernels.layout
    )  # fmt: skip
    base = _commit(mirror, base_ref, base_sha, base_kernels)
    head = _commit(mirror, request.head, head_sha, head_kernels)
    impact = None if request.measure_noise else _impact(mirror, base, head, head_kernels, lanes)
    suite = known.suite_of(request.repo, head_kernels.layout.value)
    return NewRun(
        name=(request.name or head.subject or head_sha[:12])[:LONGEST_NAME], repository_url=request.repo,
        main_branch=main, layout=head_kernels.layout, base=base, head=head, lanes=lanes, margin=request.margin,
        created_by="admin", questions=request.questions, measure_noise=request.measure_noise, idempotency_key=key,
        early_stopping=request.early_stopping, confirm=request.confirm, repeats=request.repeats,
        tritons=known.tritons, suite=suite if suite and _has_tests(mirror, suite, base_sha, head_sha) else None,
        conflicts=_conflicts(request, mirror, head_sha),
        impact=impact, unreachable={} if request.measure_noise else unreachable_lanes(
            lanes, impact, layout=head_kernels.layout, kernel_path=head_kernels.path
        ),
    )  # fmt: skip


def _has_tests(mirror: Mirror, suite: Suite, *commits: str) -> bool:
    """A commit that removed its tests is still asked for them, and says that they are gone."""
    return any(mirror.has_path(sha, path) for sha in commits for path in suite.paths)


def _impact(mirror: Mirror, base: Commit, head: Commit, kernels: Kernels, lanes: tuple[Lane, ...]) -> ImpactView | None:
    """What the change reaches; None, and a line in the log, if that cannot be told. A run never waits for it."""
    found = bounded_impact(mirror, base.sha, head.sha, kernels, lanes)
    if isinstance(found, str):
        _log.warning("impact_unknown", repository=mirror.url.shown, head=head.sha, reason=found)
        return None
    return found


def _conflicts(request: SubmitRequest, mirror: Mirror, head_sha: str) -> tuple[str, ...]:
    """Files in which head could not be merged into its target; asked only where a target is named."""
    return () if request.target is None else tuple(mirror.merge_conflicts(mirror.resolve(request.target), head_sha))


def _base(request: SubmitRequest, mirror: Mirror, head_sha: str, main: str) -> tuple[str, str]:
    """(as it is called, SHA) of the commit to compare with."""
    if request.measure_noise:
        return request.head, head_sha
    if request.base is not None:
        return request.base, pinned(mirror, request.base)
    fork = mirror.merge_base(head_sha, mirror.resolve(main))
    if fork != head_sha:
        return main, fork
    parents = mirror.commit_info(head_sha).parents
    if not parents:
        raise Refusal("no_base", f"{head_sha} is the first commit of {main}; name a base")
    return f"{request.head}^", parents[0]


def pinned(mirror: Mirror, ref: str) -> str:
    """The commit's SHA, kept in the mirror even if a later push leaves it behind."""
    sha = ref if is_full_sha(ref) else mirror.resolve(ref)
    mirror.fetch_commit(sha)
    return sha


def _kernels(mirror: Mirror, sha: str) -> Kernels:
    found = mirror.find_kernels(sha)
    if found is None or not found.path.isprintable():
        raise Refusal(
            "no_kernels", f"commit {sha} has no Mamba2 kernels: neither a package mamba2_varlen nor vLLM's mamba ops"
        )
    return found


def _commit(mirror: Mirror, ref: str, sha: str, kernels: Kernels) -> Commit:
    return Commit(
        ref=ref, sha=sha, subject=mirror.commit_info(sha).subject[:LONGEST_NAME], kernel_path=kernels.path,
        kernel_tree=measured_tree(mirror, sha, kernels),
    )  # fmt: skip
