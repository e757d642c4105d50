"""The run report of design section 9, cut out of the fuller view."""

from driftline.contracts.report import KernelCheckReport, LaneReport, LaneView, RunReport, RunView, SuiteReport


class UnfinishedRunError(ValueError):
    """A run that is not judged yet has no report."""


def run_report(view: RunView) -> RunReport:
    """The public report of a judged run. A lane that neither commit supports was not measured and is left out.

    Raises:
        UnfinishedRunError: the run, or one of its lanes, has no verdict yet; the message names it.
    """
    if view.verdict is None:
        raise UnfinishedRunError(f"run {view.name} is {view.state}: it has no verdict yet")
    return RunReport(
        name=view.name,
        base=view.base,
        head=view.head,
        verdict=view.verdict,
        kernel_check=KernelCheckReport(
            result=view.kernel_check.result, failed_cases=list(view.kernel_check.failed_cases)
        ),
        suite=None
        if view.suite is None
        else SuiteReport(result=view.suite.result, new_failures=[test.node_id for test in view.suite.new_failures]),
        lanes=[_lane_report(lane, view.name) for lane in view.lanes if lane.unsupported is None],
    )


def _lane_report(lane: LaneView, run: str) -> LaneReport:
    if lane.verdict is None:
        raise UnfinishedRunError(f"lane {lane.name} of run {run} has no verdict yet")
    return LaneReport(
        name=lane.name,
        engine=lane.engine,
        mode=lane.mode,
        backend=lane.backend,
        verdict=lane.verdict,
        confirmed=lane.confirmed,
        unstable=lane.unstable,
        comparisons=list(lane.comparisons),
    )
