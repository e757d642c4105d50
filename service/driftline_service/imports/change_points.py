"""Since which commit a lane's score is another: change points over the commits that served as base.

Heads of changes under test are no history of main and are left out, as is what people reported: its questions may be others.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

import numpy as np
from driftline.contracts.change_points import LaneChangePoints, LevelChange, Watched
from driftline.statistics.change_points import ChangePoint, change_points
from sqlalchemy.orm import Session

from driftline_service.database import history_queries
from driftline_service.database.history_queries import Measured
from driftline_service.imports.change_states import with_states
from driftline_service.imports.history import known_lane
from driftline_service.lanes import Lanes

MOST_EVALUATIONS = 400
"""The newest so many; a search over more takes seconds."""

Commits = list[list[Measured]]


def lane_change_points(session: Session, lane: str, lanes: Lanes, *, repository: str | None) -> LaneChangePoints:
    """The change points of each repository's history on a lane; of one repository, if one is named.

    Raises:
        Refusal: unknown_lane, if it is neither configured nor was ever measured or reported on.
    """
    known_lane(session, lane, lanes)
    measured = history_queries.measured_on(session, lane, repository=repository, limit=MOST_EVALUATIONS, base_only=True)
    return with_states(session, found_in(lane, measured))


def found_in(lane: str, measured: Iterable[Measured]) -> LaneChangePoints:
    """The change points in some evaluations, in any order."""
    histories = {
        repository: _commits(list(evaluations))
        for repository, evaluations in groupby(
            sorted(measured, key=attrgetter("repository", "at")), key=attrgetter("repository")
        )
    }
    return LaneChangePoints(
        lane=lane,
        watched=[
            Watched(repository=repository, commits=len(commits), questions=commits[-1][0].questions)
            for repository, commits in histories.items()
        ],
        points=[change for commits in histories.values() for change in _changes(commits)],
    )


def _commits(evaluations: Sequence[Measured]) -> Commits:
    """Evaluations by commit, in the order in which commits came; only those over as many questions as the newest."""
    by_commit: dict[str, list[Measured]] = {}
    for each in evaluations:
        if each.questions == evaluations[-1].questions:
            by_commit.setdefault(each.commit, []).append(each)
    return list(by_commit.values())


def _changes(commits: Commits) -> Iterator[LevelChange]:
    for key in sorted({key for commit in commits for each in commit for key in each.metrics}, reverse=True):
        measured = [commit for commit in commits if all(key in each.metrics for each in commit)]
        # A commit that was measured twice is one commit: its mean is nearer to what it scores.
        history = tuple(float(np.mean([each.metrics[key] for each in commit])) for commit in measured)
        metric, _, name = key.partition(",")
        for point in _searched(history):
            first = measured[point.index][0]
            yield LevelChange(
                metric=metric, filter=name, repository=first.repository, commit=first.commit, at=first.at,
                previous_commit=measured[point.index - 1][0].commit, run_id=first.run_id, before=point.before,
                after=point.after, p_value=point.p_value,
            )  # fmt: skip


@lru_cache(maxsize=256)
def _searched(history: tuple[float, ...]) -> tuple[ChangePoint, ...]:
    """A history changes with a measurement and is looked at far oftener; a search of 200 commits takes a second."""
    return change_points(np.array(history))
