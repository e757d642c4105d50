"""What is known and decided of a lane's change points: detected, confirmed by a run or a person, then settled by people.

A point itself is found anew at every look; what was decided of its commit stays, append-only, and the latest word counts.
"""

from collections.abc import Iterable, Mapping, Sequence

from driftline.contracts.change_points import Decision, LaneChangePoints, LevelChange
from driftline.contracts.change_state import ChangeState
from driftline.contracts.words import Confirmed, Verdict
from sqlalchemy.orm import Session

from driftline_service.database import audit, change_point_queries
from driftline_service.database.change_point_queries import Compared
from driftline_service.database.tables import ChangePointDecision
from driftline_service.intake.refusal import Refusal

SERVICE = "driftline"
"""Who confirms where a run did."""

MAY_FOLLOW: Mapping[ChangeState, frozenset[ChangeState]] = {
    ChangeState.DETECTED: frozenset({ChangeState.CONFIRMED, ChangeState.IGNORED}),
    ChangeState.CONFIRMED: frozenset({ChangeState.ACKNOWLEDGED, ChangeState.IGNORED, ChangeState.FIXED}),
    ChangeState.ACKNOWLEDGED: frozenset({ChangeState.IGNORED, ChangeState.FIXED}),
    ChangeState.IGNORED: frozenset({ChangeState.CONFIRMED}),
    ChangeState.FIXED: frozenset({ChangeState.CONFIRMED}),
}
"""A point that is only suspected may be set aside, but is nobody's to fix; one that was settled wrongly is confirmed again."""

AGREES = frozenset({Confirmed.YES.value, Confirmed.NOT_NEEDED.value})


def with_states(session: Session, found: LaneChangePoints) -> LaneChangePoints:
    """The points with what is known and decided of each."""
    if not found.points:
        return found
    decisions = change_point_queries.decisions_on(session, found.lane)
    runs = change_point_queries.compared(session, {(each.previous_commit, each.commit) for each in found.points})
    points = [_with_state(each, found.lane, decisions, runs) for each in found.points]
    return found.model_copy(update={"points": points})


def decide(
    session: Session, found: LaneChangePoints, commit: str, decision: Decision, *, filter_name: str | None
) -> int:
    """Keep a decision on the points at a commit, in the caller's transaction; how many they are.

    Raises:
        Refusal: unknown_change_point, or wrong_state if the state may not follow the one that a point has.
    """
    chosen = [each for each in found.points if each.commit.startswith(commit) and filter_name in (None, each.filter)]
    if len({each.commit for each in chosen}) != 1:
        known = ", ".join(sorted({each.commit[:12] for each in found.points})) or "none"
        raise Refusal(
            "unknown_change_point", f"no one change point of {found.lane} at {commit!r}; there are {known}", status=404
        )
    for point in chosen:
        if decision.state not in MAY_FOLLOW[point.state]:
            may = ", ".join(sorted(MAY_FOLLOW[point.state]))
            raise Refusal(
                "wrong_state",
                f"{point.filter} at {point.commit[:12]} is {point.state}; it may become {may}",
                status=409,
            )
        session.add(
            ChangePointDecision(
                lane_name=found.lane, repository=point.repository, metric=point.metric, filter=point.filter,
                commit_sha=point.commit, state=decision.state, who=decision.who, why=decision.why, at=decision.at,
            )
        )  # fmt: skip
        audit.note(session, decision.who, f"change_point_{decision.state.value}", lane=found.lane, commit=point.commit,
                   filter=point.filter, why=decision.why)  # fmt: skip
    return len(chosen)


def _with_state(
    point: LevelChange, lane: str, decisions: Sequence[ChangePointDecision], runs: Iterable[Compared]
) -> LevelChange:
    """A run of the point's own two commits counts as a decision of its time: what people said later stands above it."""
    said = [
        Decision(state=each.state, who=each.who, why=each.why, at=each.at) for each in decisions if _is_of(each, point)
    ]
    said += [
        Decision(state=ChangeState.CONFIRMED, who=SERVICE, why=f"run {run.run_id} compared the two", at=run.at)
        for run in runs
        if _agrees(run, point, lane)
    ][:1]
    # A confirmation of our own comes first whenever it was: it never takes back what a person decided.
    said.sort(key=lambda each: (each.who != SERVICE, each.at))
    return point.model_copy(update={"decisions": said, "state": said[-1].state if said else ChangeState.DETECTED})


def _is_of(decision: ChangePointDecision, point: LevelChange) -> bool:
    ours = (decision.repository, decision.metric, decision.filter, decision.commit_sha)
    return ours == (point.repository, point.metric, point.filter, point.commit)


def _agrees(run: Compared, point: LevelChange, lane: str) -> bool:
    """Whether a run of these two commits found the same move on this lane, and a fresh pair did again or was not needed."""
    if (run.repository, run.base, run.head) != (point.repository, point.previous_commit, point.commit):
        return False
    moved = Verdict.REGRESSED if point.after < point.before else Verdict.IMPROVED
    return any(
        each["name"] == lane and each["verdict"] == moved.value and each["confirmed"] in AGREES for each in run.lanes
    )
