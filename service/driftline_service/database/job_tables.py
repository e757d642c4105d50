"""What workers are given: jobs, attempts, claim tokens, the outbox, and who the workers are."""

from datetime import date, datetime
from uuid import UUID

from driftline.contracts.words import Arm, AttemptState, FailureKind, JobKind, JobState
from sqlalchemy import CheckConstraint, Computed, ForeignKey, Index, Text, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from driftline_service.database import base
from driftline_service.database.base import Base, Json, one_of, quoted, word

FINISHED_JOB = quoted(state for state in JobState if state.finished)


class Job(Base):
    """One unit a worker executes for one arm. Of one (run, kind, arm, lane, pair) the highest generation counts."""

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint(
            "run_id", "kind", "arm", "lane_name", "pair", "generation", postgresql_nulls_not_distinct=True
        ),
        CheckConstraint("pair = 0 or (pair > 0 and kind = 'evaluate')", name="pair"),
        one_of("kind", JobKind),
        one_of("arm", Arm),
        one_of("state", JobState),
        one_of("failure_kind", FailureKind),
        CheckConstraint("(lane_name is not null) = (kind = 'evaluate')", name="lane"),
        CheckConstraint(
            "(adopted_attempt_id is not null or import_id is not null) = (state = 'succeeded')", name="adopted"
        ),
        CheckConstraint(
            "import_id is null or (adopted_attempt_id is null and kind = 'evaluate' and arm = 'base')", name="import"
        ),
        CheckConstraint("(failure_kind is not null) = (state = 'failed')", name="failure"),
        CheckConstraint(f"(finished_at is not null) = (state in ({FINISHED_JOB}))", name="finished"),
        Index(
            "ix_jobs_history",
            "lane_name",
            "finished_at",
            postgresql_where="kind = 'evaluate' and state = 'succeeded'",
        ),
        Index("ix_jobs_sort", "kind", "lane_name", "finished_at", postgresql_where="state = 'succeeded'"),
        Index("ix_jobs_unfinished", "commit_sha", "kind", postgresql_where="state in ('queued', 'running')"),
        Index("ix_jobs_baseline", "commit_sha", "kind", "lane_hash", postgresql_where="state = 'succeeded'"),
    )

    id: Mapped[base.Identity]
    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"))
    kind: Mapped[JobKind] = mapped_column(word(JobKind))
    arm: Mapped[Arm] = mapped_column(word(Arm))
    commit_sha: Mapped[str] = mapped_column(Text)
    kernel_path: Mapped[str] = mapped_column(Text)
    lane_name: Mapped[str | None] = mapped_column(Text)
    lane_hash: Mapped[str | None] = mapped_column(Text)
    pair: Mapped[int] = mapped_column(server_default="0")
    """which pair of evaluations of the lane: the first, 0, decides; the next is a fresh one; all tell the noise"""
    generation: Mapped[int] = mapped_column(server_default="0")
    queue: Mapped[str] = mapped_column(Text)
    state: Mapped[JobState] = mapped_column(word(JobState), server_default=JobState.QUEUED)
    failure_kind: Mapped[FailureKind | None] = mapped_column(word(FailureKind))
    failure_reason: Mapped[str | None] = mapped_column(Text)
    message: Mapped[str] = mapped_column(Text, server_default="")
    adopted_attempt_id: Mapped[UUID | None] = mapped_column(ForeignKey("attempts.id", use_alter=True))
    reused_from_job_id: Mapped[UUID | None] = mapped_column(ForeignKey("jobs.id"))
    import_id: Mapped[UUID | None] = mapped_column(ForeignKey("imports.id"))
    """the promoted import that stands for this base evaluation"""
    not_before: Mapped[datetime | None]
    created_at: Mapped[base.CreatedAt]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class Attempt(Base):
    """One try at a job: a lease, a token, its own samples. A job has at most one running attempt."""

    __tablename__ = "attempts"
    __table_args__ = (
        UniqueConstraint("job_id", "number"),
        UniqueConstraint("token_hash"),
        UniqueConstraint("id", "month"),
        one_of("state", AttemptState),
        one_of("failure_kind", FailureKind),
        CheckConstraint("(finished_at is not null) = (state <> 'running')", name="finished"),
        CheckConstraint("asked is null or asked > 0", name="asked"),
        Index("ix_attempts_running", "job_id", unique=True, postgresql_where="state = 'running'"),
    )

    id: Mapped[base.Identity]
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    number: Mapped[int]
    state: Mapped[AttemptState] = mapped_column(word(AttemptState), server_default=AttemptState.RUNNING)
    worker_name: Mapped[str] = mapped_column(Text)
    worker: Mapped[Json]
    """WorkerFacts"""
    environment_id: Mapped[str] = mapped_column(Text)
    token_hash: Mapped[str] = mapped_column(Text)
    lease_until: Mapped[datetime]
    next_sequence: Mapped[int] = mapped_column(server_default="0")
    """how many batches are stored; the only sequence that will be stored next"""
    asked: Mapped[int | None]
    """how many questions of the fixed order this evaluation consists of, if it was stopped before all"""
    looked: Mapped[int] = mapped_column(server_default="0")
    """questions up to which it was looked at beside the other arm"""
    phase: Mapped[str | None] = mapped_column(Text)
    done: Mapped[int | None]
    total: Mapped[int | None]
    failure_kind: Mapped[FailureKind | None] = mapped_column(word(FailureKind))
    failure_reason: Mapped[str | None] = mapped_column(Text)
    message: Mapped[str] = mapped_column(Text, server_default="")
    dropped_lines: Mapped[int] = mapped_column(server_default="0")
    child_seconds: Mapped[float] = mapped_column(server_default="0")
    must_match: Mapped[Json | None]
    recorded: Mapped[Json | None]
    scores: Mapped[Json | None]
    """driftline.contracts.channel.Scores"""
    check_summary: Mapped[Json | None]
    """driftline.contracts.channel.CheckSummary"""
    created_at: Mapped[base.CreatedAt]
    month: Mapped[date] = mapped_column(
        Computed("date_trunc('month', created_at at time zone 'UTC')::date", persisted=True)
    )
    """in which it began, UTC: where its answers lie"""
    finished_at: Mapped[datetime | None]


class ClaimToken(Base):
    """A token that a message carried, minted when it was sent. Only its sha256 is here."""

    __tablename__ = "claim_tokens"
    __table_args__ = (Index("ix_claim_tokens_job_id", "job_id"),)

    token_hash: Mapped[str] = mapped_column(Text, primary_key=True)
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    created_at: Mapped[base.CreatedAt]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class OutboxMessage(Base):
    """A message to be sent after commit. It may be sent twice, and may be lost: the job's row is the truth."""

    __tablename__ = "outbox"
    __table_args__ = (
        Index("ix_outbox_due", "not_before", postgresql_where="sent_at is null"),
        Index("ix_outbox_job_id", "job_id"),
    )

    id: Mapped[base.Identity]
    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(Text, server_default="work")
    created_at: Mapped[base.CreatedAt]
    not_before: Mapped[datetime] = mapped_column(server_default=func.now())
    sent_at: Mapped[datetime | None]
    tries: Mapped[int] = mapped_column(server_default="0")
    last_error: Mapped[str | None] = mapped_column(Text)


class Worker(Base):
    """A worker as it last described itself."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    facts: Mapped[Json]
    """WorkerFacts"""
    last_seen: Mapped[datetime]
