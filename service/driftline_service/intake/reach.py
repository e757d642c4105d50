"""Which lanes a change can reach at all. A lane that cannot see a change would be green for the wrong reason."""

from collections.abc import Sequence

from driftline.contracts.impact import ImpactView
from driftline.contracts.lane import Lane
from driftline.contracts.words import Layout
from driftline.impact.varlen import why_unseen


def unreachable_lanes(
    lanes: Sequence[Lane], impact: ImpactView | None, *, layout: Layout, kernel_path: str
) -> dict[str, str]:
    """Lane name -> why no changed file can reach its backend. Where the imports could not be read, any change may."""
    if impact is not None:
        return {reach.lane: reach.why for reach in impact.lanes if not reach.reached}
    if layout is not Layout.MAMBA2_VARLEN:
        return {}
    return {lane.name: why for lane in lanes if (why := why_unseen(lane, kernel_path)) is not None}
