"""Of the environments that a lane may run in, the one whose release a commit of vLLM is nearest to."""

from collections.abc import Mapping, Sequence

from driftline.contracts.lane import EngineEnvironment, Lane
from driftline.contracts.words import Layout
from driftline.git import Mirror
from driftline.git.engine_files import releases_by_nearness

Environments = Mapping[str, tuple[EngineEnvironment, ...]]


def in_nearest_environments(
    lanes: Sequence[Lane], environments: Environments, *, mirror: Mirror, sha: str, layout: Layout
) -> tuple[Lane, ...]:
    """The lanes as this commit is measured. `sha` is the base: both arms of a run share one environment, or they could not be
    compared. Another layout's kernels have no release that they are near to, and keep the lane's first environment; so does a
    vLLM without the tag of any of the releases.
    """
    if layout is not Layout.VLLM:
        return tuple(lanes)
    return tuple(_nearest(lane, environments.get(lane.name, ()), mirror, sha) for lane in lanes)


def _nearest(lane: Lane, choices: Sequence[EngineEnvironment], mirror: Mirror, sha: str) -> Lane:
    if not choices:
        return lane
    releases = releases_by_nearness(mirror, sha, [choice.vllm for choice in choices])
    if not releases:
        return lane
    chosen = next(choice for choice in choices if choice.vllm == releases[0])
    return lane.model_copy(update={"runs_in": chosen})
