"""What GitHub told and what it was shown: deliveries, pull requests, and the runs made for them."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Index, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from driftline_service.database import base
from driftline_service.database.base import Base, Json


class GithubDelivery(Base):
    """A webhook as it came, once. It is answered before anything is done; the desk handles it later."""

    __tablename__ = "github_deliveries"
    __table_args__ = (
        Index("ix_github_deliveries_waiting", "received_at", postgresql_where="handled_at is null"),
        Index("ix_github_deliveries_signature", "signature", unique=True),
    )

    id: Mapped[str] = mapped_column(Text, primary_key=True)
    """GitHub's own id of the delivery"""
    event: Mapped[str] = mapped_column(Text)
    signature: Mapped[str | None] = mapped_column(Text)
    """of the raw body, by which a body that comes again under another id is known; null in rows of releases before 0011"""
    payload: Mapped[Json]
    received_at: Mapped[base.CreatedAt]
    handled_at: Mapped[datetime | None]
    outcome: Mapped[str | None] = mapped_column(Text)
    """what was done about it, or why nothing"""
    tries: Mapped[int] = mapped_column(server_default="0")


class GithubSource(Base):
    """Through which installation of the App a repository is read."""

    __tablename__ = "github_sources"

    url: Mapped[str] = mapped_column(Text, primary_key=True)
    """as git clones it"""
    repository: Mapped[str] = mapped_column(Text)
    installation_id: Mapped[int] = mapped_column(BigInteger)
    private: Mapped[bool]


class GithubPull(Base):
    """A pull request as the latest delivery described it, and the one comment that shows its runs."""

    __tablename__ = "github_pulls"
    __table_args__ = (UniqueConstraint("repository", "number"),)

    id: Mapped[base.Identity]
    repository: Mapped[str] = mapped_column(Text)
    number: Mapped[int]
    installation_id: Mapped[int] = mapped_column(BigInteger)
    clone_url: Mapped[str] = mapped_column(Text)
    base_ref: Mapped[str] = mapped_column(Text)
    head_sha: Mapped[str] = mapped_column(Text)
    fork: Mapped[bool]
    open: Mapped[bool]
    approved_sha: Mapped[str | None] = mapped_column(Text)
    conflicts: Mapped[str] = mapped_column(Text, server_default="")
    """files in which the head cannot be merged into its base, in words; empty if it can"""
    notice: Mapped[str] = mapped_column(Text, server_default="")
    """said at the head of the comment: what was refused, or what is waited for"""
    comment_id: Mapped[int | None] = mapped_column(BigInteger)
    shown: Mapped[str | None] = mapped_column(Text)
    """sha256 of the comment as GitHub has it"""
    look: Mapped[bool] = mapped_column(server_default="true")
    """something was handled since the comment was last brought up to date"""
    next_try_at: Mapped[datetime | None]
    tries: Mapped[int] = mapped_column(server_default="0")
    last_error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[base.CreatedAt]


class GithubRun(Base):
    """A run that was made for a pull request, and its check run on the head commit."""

    __tablename__ = "github_runs"
    __table_args__ = (Index("ix_github_runs_pull_id", "pull_id"),)

    run_id: Mapped[UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    pull_id: Mapped[UUID] = mapped_column(ForeignKey("github_pulls.id", ondelete="CASCADE"))
    check_run_id: Mapped[int | None] = mapped_column(BigInteger)
    check_sha: Mapped[str | None] = mapped_column(Text)
    """a later head with the very same kernels, on which the check run stands; null: the run's own head"""
    annotated: Mapped[int] = mapped_column(server_default="0")
    """so many annotations GitHub has: it adds those of each call to what is there"""
    shown: Mapped[str | None] = mapped_column(Text)
    """sha256 of the check run as GitHub has it"""
    shown_state: Mapped[str | None] = mapped_column(Text)
    """the run's state when comment and check run were last brought up to date"""
    created_at: Mapped[base.CreatedAt]
