"""What was asked for and what became of it: repositories, runs, their lanes, the event log."""

from datetime import datetime
from typing import Any
from uuid import UUID

from driftline.contracts.words import Layout, RunState
from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, Text, UniqueConstraint, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from driftline_service.database import base
from driftline_service.database.base import Base, Json, one_of, quoted, word

FINISHED_RUN = quoted(state for state in RunState if state.finished)


class Repository(Base):
    """A git repository under test."""

    __tablename__ = "repositories"
    __table_args__ = (UniqueConstraint("url"),)

    id: Mapped[base.Identity]
    url: Mapped[str] = mapped_column(Text)
    main_branch: Mapped[str] = mapped_column(Text)
    created_at: Mapped[base.CreatedAt]


class Run(Base):
    """One request: head against base on a set of lanes. A finished state never changes (trigger `keep_finished`)."""

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("idempotency_key"),
        one_of("layout", Layout),
        one_of("state", RunState),
        CheckConstraint("margin > 0 and margin <= 1", name="margin"),
        CheckConstraint("repeats >= 0", name="repeats"),
        CheckConstraint(f"(finished_at is not null) = (state in ({FINISHED_RUN}))", name="finished"),
        CheckConstraint("(view is not null) = (state = 'done')", name="judged"),
        CheckConstraint("(failure_reason is not null) = (state = 'failed')", name="failure"),
        Index("ix_runs_created_at", "created_at"),
        Index("ix_runs_active", "state", postgresql_where=f"state not in ({FINISHED_RUN})"),
        Index("ix_runs_repository_id", "repository_id"),
    )

    id: Mapped[base.Identity]
    name: Mapped[str] = mapped_column(Text)
    repository_id: Mapped[UUID] = mapped_column(ForeignKey("repositories.id"))
    base_ref: Mapped[str] = mapped_column(Text)
    head_ref: Mapped[str] = mapped_column(Text)
    base_sha: Mapped[str] = mapped_column(Text)
    head_sha: Mapped[str] = mapped_column(Text)
    base_subject: Mapped[str] = mapped_column(Text)
    head_subject: Mapped[str] = mapped_column(Text)
    layout: Mapped[Layout] = mapped_column(word(Layout))
    base_kernel_path: Mapped[str] = mapped_column(Text)
    head_kernel_path: Mapped[str] = mapped_column(Text)
    base_kernel_tree: Mapped[str] = mapped_column(Text)
    head_kernel_tree: Mapped[str] = mapped_column(Text)
    state: Mapped[RunState] = mapped_column(word(RunState), server_default=RunState.QUEUED)
    margin: Mapped[float]
    measure_noise: Mapped[bool] = mapped_column(server_default="false")
    repeats: Mapped[int] = mapped_column(server_default="0")
    """pairs of each lane that were asked for beyond the first"""
    failure_reason: Mapped[str | None] = mapped_column(Text)
    failure_message: Mapped[str | None] = mapped_column(Text)
    created_by: Mapped[str] = mapped_column(Text)
    idempotency_key: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[base.CreatedAt]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    view: Mapped[Json | None]
    """RunView as judged"""
    impact: Mapped[Json | None]
    """ImpactView; null if the imports could not be read, and of an A/A run"""
    tritons: Mapped[list[Any] | None] = mapped_column(JSONB)
    """of driftline.contracts.kernel_jobs.TritonRelease; null: the worker's own alone"""
    suite: Mapped[Json | None]
    """driftline.contracts.kernel_jobs.Suite; null: the repository's own tests are not run"""
    method_version: Mapped[str | None] = mapped_column(Text)
    inputs_hash: Mapped[str | None] = mapped_column(Text)

    repository: Mapped[Repository] = relationship(lazy="joined")


class RunVerdict(Base):
    """How many runs were judged so. Trigger `count_verdict` alone writes it, with the state that a run ends in."""

    __tablename__ = "run_verdicts"
    __table_args__ = (CheckConstraint("runs > 0", name="runs"),)

    verdict: Mapped[str] = mapped_column(Text, primary_key=True)
    """`none`: the run had no verdict"""
    kernel_check: Mapped[str] = mapped_column(Text, primary_key=True)
    runs: Mapped[int] = mapped_column(BigInteger)


class RunLane(Base):
    """A lane frozen into a run, in the order it was asked for."""

    __tablename__ = "run_lanes"
    __table_args__ = (
        UniqueConstraint("run_id", "name"),
        CheckConstraint(
            "(stopped_after is null) = (stopped_why is null) and (stopped_after is null or stopped_after > 0)",
            name="stopped",
        ),
    )

    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(Text)
    lane: Mapped[Json]
    """driftline.contracts.lane.Lane"""
    lane_hash: Mapped[str] = mapped_column(Text)
    identical: Mapped[str | None] = mapped_column(Text)
    """why both arms are byte for byte the same: nothing is evaluated"""
    unreachable: Mapped[str | None] = mapped_column(Text)
    """why no changed file can reach this lane's backend: nothing is evaluated"""
    stopped_after: Mapped[int | None]
    """so many questions of the fixed order were enough; set once"""
    stopped_why: Mapped[str | None] = mapped_column(Text)


class Event(Base):
    """Why a run, or an import, is where it is. Append-only (trigger `append_only`); a run's notify `driftline_events`."""

    __tablename__ = "events"
    __table_args__ = (
        CheckConstraint("num_nonnulls(run_id, import_id) = 1", name="subject"),
        Index("ix_events_run_id_id", "run_id", "id"),
        Index("ix_events_import_id_id", "import_id", "id", postgresql_where="import_id is not null"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    run_id: Mapped[UUID | None] = mapped_column(ForeignKey("runs.id"))
    import_id: Mapped[UUID | None] = mapped_column(ForeignKey("imports.id"))
    job_id: Mapped[UUID | None] = mapped_column(ForeignKey("jobs.id"))
    at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    kind: Mapped[str] = mapped_column(Text)
    message: Mapped[str] = mapped_column(Text, server_default="")
