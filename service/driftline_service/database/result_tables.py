"""What children reported, one row a line. Only rows of adopted attempts are ever read."""

from datetime import date
from uuid import UUID

from driftline.contracts.words import CaseKind
from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, LargeBinary, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from driftline_service.database.base import Base, one_of, word

THIS_MONTH = text("date_trunc('month', now() at time zone 'UTC')::date")
"""For the release before months; whoever knows the attempt gives the attempt's own."""


def _of_attempt() -> ForeignKeyConstraint:
    """The attempt and its month together: so a row lies in its attempt's month, and its key is one question of an attempt."""
    return ForeignKeyConstraint(["attempt_id", "month"], ["attempts.id", "attempts.month"], ondelete="CASCADE")


class Question(Base):
    """A question and its gold answer, stored once.

    The key is a hash that the service computes itself: were it the child's own `doc_hash`, a forged line could put
    another gold answer under every other run's questions.
    """

    __tablename__ = "questions"

    content_hash: Mapped[str] = mapped_column(Text, primary_key=True)
    question: Mapped[str] = mapped_column(Text)
    target: Mapped[str] = mapped_column(Text)


class Sample(Base):
    """One question's outcome in one attempt. A table a month (`months.py`)."""

    __tablename__ = "samples"
    __table_args__ = (
        CheckConstraint("finish_reason in ('stop', 'length')", name="finish_reason"),
        _of_attempt(),
        {"postgresql_partition_by": "RANGE (month)"},
    )

    attempt_id: Mapped[UUID] = mapped_column(primary_key=True)
    doc_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    month: Mapped[date] = mapped_column(primary_key=True, server_default=THIS_MONTH)
    rank: Mapped[int]
    content_hash: Mapped[str] = mapped_column(ForeignKey("questions.content_hash"))
    doc_hash: Mapped[str] = mapped_column(Text)
    prompt_hash: Mapped[str] = mapped_column(Text)
    target_hash: Mapped[str] = mapped_column(Text)
    response: Mapped[str] = mapped_column(Text)
    finish_reason: Mapped[str] = mapped_column(Text)
    prompt_tokens: Mapped[int]
    response_tokens: Mapped[int]
    left_truncated: Mapped[bool]


class TeacherForced(Base):
    """Teacher-forced log-probabilities of one question. Tables of their own, by month: they may come before the sample."""

    __tablename__ = "teacher_forced"
    __table_args__ = (_of_attempt(), {"postgresql_partition_by": "RANGE (month)"})

    attempt_id: Mapped[UUID] = mapped_column(primary_key=True)
    doc_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    month: Mapped[date] = mapped_column(primary_key=True, server_default=THIS_MONTH)
    logprobs: Mapped[bytes] = mapped_column(LargeBinary)
    """little-endian float32, nats; `scored_prompt_tokens` of the prompt, then those of the gold answer"""
    scored_prompt_tokens: Mapped[int]


class KernelCase(Base):
    """One kernel check case."""

    __tablename__ = "kernel_cases"
    __table_args__ = (one_of("kind", CaseKind),)

    attempt_id: Mapped[UUID] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(Text)
    kind: Mapped[CaseKind] = mapped_column(word(CaseKind))
    backend: Mapped[str] = mapped_column(Text)
    passed: Mapped[bool]
    max_abs_err: Mapped[float | None]
    max_rel_err: Mapped[float | None]
    tolerance: Mapped[float]
    config: Mapped[str] = mapped_column(Text)
    message: Mapped[str] = mapped_column(Text)


class KernelBuild(Base):
    """One kernel compiled for one architecture, or the compiler's refusal."""

    __tablename__ = "kernel_builds"

    attempt_id: Mapped[UUID] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kernel: Mapped[str] = mapped_column(Text)
    config: Mapped[str] = mapped_column(Text)
    arch: Mapped[str] = mapped_column(Text)
    registers: Mapped[int | None]
    spills: Mapped[int | None]
    shared_memory: Mapped[int | None]
    compiled: Mapped[bool]
    error: Mapped[str] = mapped_column(Text)
    triton: Mapped[str] = mapped_column(Text, server_default="")
