"""What people decide of change points."""

from driftline.contracts.change_state import ChangeState
from sqlalchemy import BigInteger, Identity, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from driftline_service.database import base
from driftline_service.database.base import Base, one_of, word


class ChangePointDecision(Base):
    """One decision. The latest of one point counts; append-only (trigger `append_only`)."""

    __tablename__ = "change_point_decisions"
    __table_args__ = (
        one_of("state", ChangeState),
        Index("ix_change_point_decisions_lane_name_id", "lane_name", "id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    lane_name: Mapped[str] = mapped_column(Text)
    repository: Mapped[str] = mapped_column(Text)
    metric: Mapped[str] = mapped_column(Text)
    filter: Mapped[str] = mapped_column(Text)
    commit_sha: Mapped[str] = mapped_column(Text)
    state: Mapped[ChangeState] = mapped_column(word(ChangeState))
    who: Mapped[str] = mapped_column(Text)
    why: Mapped[str] = mapped_column(Text)
    at: Mapped[base.CreatedAt]
