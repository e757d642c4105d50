"""What readers get of a lane's change points: since which commit its score is another."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from driftline.contracts.base import Contract
from driftline.contracts.change_state import ChangeState


class Decision(Contract):
    """The latest word on a change point."""

    state: ChangeState
    who: str = Field(description="a token's name; `driftline` where a run of this service confirmed it")
    why: str
    at: datetime


class LevelChange(Contract):
    """The first measured commit of a new level. The change lies after `previous_commit` and not after `commit`."""

    metric: str
    filter: str
    repository: str
    previous_commit: str
    commit: str
    at: datetime = Field(description="when that commit was measured first")
    run_id: UUID = Field(description="of that measurement")
    before: float = Field(description="median score of the level before")
    after: float
    p_value: float = Field(description="chance that a history without a change splits as well; 1 - p is the confidence")
    state: ChangeState = ChangeState.DETECTED
    decisions: list[Decision] = Field(default=[], description="oldest first; the last one is the state")


class Watched(Contract):
    """One repository's commits that were looked at."""

    repository: str
    commits: int
    questions: int = Field(description="of each; evaluations over another number of questions are left out")


class LaneChangePoints(Contract):
    """Of the commits that served as base, in the order in which they were first measured, newest last."""

    lane: str
    watched: list[Watched]
    points: list[LevelChange]
