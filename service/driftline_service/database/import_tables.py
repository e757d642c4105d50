"""What people report: imported evaluations, their scores and samples. Nothing here was measured by this service."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Text, func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from driftline_service.database import base
from driftline_service.database.base import Base, Json, one_of, word


class ImportKind(StrEnum):
    """`figures`: only the numbers are known, so that nothing can ever be compared by pairs."""

    SAMPLES = "samples"
    FIGURES = "figures"


class Import(Base):
    """One evaluation that a person reported. Promoted, it may stand for a base arm in one environment."""

    __tablename__ = "imports"
    __table_args__ = (
        one_of("kind", ImportKind),
        CheckConstraint("commit_sha ~ '^[0-9a-f]{7,40}$'", name="commit"),
        CheckConstraint("num_nonnulls(promoted_at, promoted_by, environment_id, lane_hash) in (0, 4)", name="promoted"),
        CheckConstraint(
            "promoted_at is null or (kind = 'samples' and repository is not null and length(commit_sha) = 40 "
            "and withdrawn_at is null)",
            name="baseline",
        ),
        Index("ix_imports_content_hash", "content_hash", unique=True, postgresql_where="withdrawn_at is null"),
        Index("ix_imports_lane_name_created_at", "lane_name", "created_at"),
        Index("ix_imports_created_at", "created_at", "id"),
        Index("ix_imports_baseline", "commit_sha", "lane_hash", postgresql_where="promoted_at is not null"),
    )

    id: Mapped[base.Identity]
    kind: Mapped[ImportKind] = mapped_column(word(ImportKind))
    content_hash: Mapped[str] = mapped_column(Text)
    """sha256 of what was reported, commit and lane: the same report twice is one import"""
    lane_name: Mapped[str] = mapped_column(Text)
    task: Mapped[str] = mapped_column(Text)
    commit_sha: Mapped[str] = mapped_column(Text)
    repository: Mapped[str | None] = mapped_column(Text)
    facts: Mapped[Json]
    """what the files state in the names of an attempt's must_match"""
    details: Mapped[Json]
    """what else they state, name -> text; decides nothing"""
    warnings: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default="{}")
    reported_by: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text, server_default="")
    measured_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    """not the transaction's time: points of one file keep their order"""
    promoted_at: Mapped[datetime | None]
    promoted_by: Mapped[str | None] = mapped_column(Text)
    environment_id: Mapped[str | None] = mapped_column(Text)
    """the worker environment for which a promoted import stands"""
    lane_hash: Mapped[str | None] = mapped_column(Text)
    """the lane, as it was configured at the promotion"""
    withdrawn_at: Mapped[datetime | None]


class ImportScore(Base):
    """One line of lm-eval's own table."""

    __tablename__ = "import_scores"
    __table_args__ = (CheckConstraint("questions > 0", name="questions"),)

    import_id: Mapped[UUID] = mapped_column(ForeignKey("imports.id", ondelete="CASCADE"), primary_key=True)
    metric: Mapped[str] = mapped_column(Text, primary_key=True)
    filter: Mapped[str] = mapped_column(Text, primary_key=True)
    value: Mapped[float]
    stderr: Mapped[float | None]
    questions: Mapped[int]


class ImportSample(Base):
    """One question's outcome. What lm-eval does not write (finish reason, tokens) is unknown, so it has no column."""

    __tablename__ = "import_samples"

    import_id: Mapped[UUID] = mapped_column(ForeignKey("imports.id", ondelete="CASCADE"), primary_key=True)
    doc_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    content_hash: Mapped[str] = mapped_column(ForeignKey("questions.content_hash"))
    doc_hash: Mapped[str] = mapped_column(Text)
    prompt_hash: Mapped[str] = mapped_column(Text)
    target_hash: Mapped[str] = mapped_column(Text)
    response: Mapped[str] = mapped_column(Text)
    scores: Mapped[Json]
    """filter -> exact_match as lm-eval scored it"""
    extracted: Mapped[Json]
    """filter -> what lm-eval took from the response"""
