"""What a repository's own tests came to, one row a line. Only rows of adopted attempts are ever read."""

from uuid import UUID

from driftline.contracts.words import SuiteOutcome
from sqlalchemy import ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from driftline_service.database.base import Base, one_of, word


class KernelTest(Base):
    """One test, or one file that could not be collected."""

    __tablename__ = "kernel_tests"
    __table_args__ = (one_of("outcome", SuiteOutcome),)

    attempt_id: Mapped[UUID] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    node_id: Mapped[str] = mapped_column(Text)
    outcome: Mapped[SuiteOutcome] = mapped_column(word(SuiteOutcome))
    seconds: Mapped[float]
    message: Mapped[str] = mapped_column(Text)


class TestTolerance(Base):
    """One number in a test file by which its author says what counts as equal."""

    __test__ = False
    __tablename__ = "test_tolerances"

    attempt_id: Mapped[UUID] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    file: Mapped[str] = mapped_column(Text)
    line: Mapped[int]
    scope: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    value: Mapped[float]
