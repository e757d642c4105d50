"""Every table in one name: import tables from here. docs/architecture.md draws how they hang together."""

from driftline_service.database.access_tables import ApiToken, AuditEntry
from driftline_service.database.base import Base
from driftline_service.database.bisect_tables import Bisect, BisectStep
from driftline_service.database.change_point_tables import ChangePointDecision
from driftline_service.database.github_tables import GithubDelivery, GithubPull, GithubRun, GithubSource
from driftline_service.database.import_tables import Import, ImportKind, ImportSample, ImportScore
from driftline_service.database.job_tables import Attempt, ClaimToken, Job, OutboxMessage, Worker
from driftline_service.database.result_tables import KernelBuild, KernelCase, Question, Sample, TeacherForced
from driftline_service.database.run_tables import Event, Repository, Run, RunLane, RunVerdict
from driftline_service.database.suite_tables import KernelTest, TestTolerance

EVENTS_CHANNEL = "driftline_events"
"""NOTIFY channel of new rows in `events`; the payload is the run's id."""

PROGRESS_CHANNEL = "driftline_progress"
"""NOTIFY channel of stored batches of lines; the payload is the run's id."""

__all__ = [
    "EVENTS_CHANNEL", "PROGRESS_CHANNEL", "ApiToken", "Attempt", "AuditEntry", "Base", "Bisect", "BisectStep",
    "ChangePointDecision", "ClaimToken", "Event",
    "GithubDelivery", "GithubPull", "GithubRun", "GithubSource", "Import", "ImportKind", "ImportSample", "ImportScore", "Job",
    "KernelBuild", "KernelCase", "KernelTest", "OutboxMessage", "Question", "Repository", "Run", "RunLane", "RunVerdict",
    "Sample", "TeacherForced", "TestTolerance", "Worker",
]  # fmt: skip
