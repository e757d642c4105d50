"""Searches for the first bad commit, and the runs that are their steps."""

from datetime import datetime
from typing import Any
from uuid import UUID

from driftline.contracts.bisect import BisectState, StepOutcome
from driftline.contracts.words import Layout
from sqlalchemy import CheckConstraint, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from driftline_service.database import base
from driftline_service.database.base import Base, Json, one_of, word
from driftline_service.database.run_tables import Repository


class Bisect(Base):
    """One search. What it may try was found when it was asked for; what it tried are its steps."""

    __tablename__ = "bisects"
    __table_args__ = (
        one_of("layout", Layout),
        one_of("state", BisectState),
        CheckConstraint("margin > 0 and margin <= 1", name="margin"),
        CheckConstraint("(finished_at is not null) = (state <> 'running')", name="finished"),
        CheckConstraint("(first_bad_sha is not null) = (state = 'found')", name="found"),
        Index("ix_bisects_running", "created_at", postgresql_where="state = 'running'"),
    )

    id: Mapped[base.Identity]
    repository_id: Mapped[UUID] = mapped_column(ForeignKey("repositories.id"))
    layout: Mapped[Layout] = mapped_column(word(Layout))
    good: Mapped[Json]
    """driftline.contracts.bisect.BisectCommit"""
    commits: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    """BisectCommit, first-parent from the one after good to bad, oldest first"""
    lane: Mapped[Json]
    """driftline.contracts.lane.Lane"""
    margin: Mapped[float]
    state: Mapped[BisectState] = mapped_column(word(BisectState), server_default=BisectState.RUNNING)
    first_bad_sha: Mapped[str | None] = mapped_column(Text)
    message: Mapped[str] = mapped_column(Text, server_default="")
    created_by: Mapped[str] = mapped_column(Text)
    created_at: Mapped[base.CreatedAt]
    finished_at: Mapped[datetime | None]

    repository: Mapped[Repository] = relationship(lazy="joined")


class BisectStep(Base):
    """One commit that was tried: its run against good, and what came out; null while the run goes on."""

    __tablename__ = "bisect_steps"
    __table_args__ = (
        UniqueConstraint("bisect_id", "sha"),
        one_of("outcome", StepOutcome),
        Index("ix_bisect_steps_run_id", "run_id"),
    )

    bisect_id: Mapped[UUID] = mapped_column(ForeignKey("bisects.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    sha: Mapped[str] = mapped_column(Text)
    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id"))
    outcome: Mapped[StepOutcome | None] = mapped_column(word(StepOutcome))
    why: Mapped[str] = mapped_column(Text, server_default="")
