"""Tests that fail on one type of GPU and pass on another: what people ask when a failure does not repeat elsewhere."""

from collections.abc import Mapping

from driftline.contracts.report import GpuDifference
from driftline.contracts.words import Arm
from driftline.evidence import ArmFailure, SuiteEvidence
from sqlalchemy.orm import Session

from driftline_service.database import suite_queries
from driftline_service.database.tables import Run

NO_GPU = "a CPU"


def gpu_differences(
    session: Session, run: Run, suites: Mapping[Arm, SuiteEvidence | ArmFailure | None]
) -> tuple[GpuDifference, ...]:
    """Of head's tests; skipped ones say nothing. Empty while head's did not run."""
    head = suites.get(Arm.HEAD)
    if not isinstance(head, SuiteEvidence):
        return ()
    here = {test.node_id: test.outcome for test in head.tests}
    found = []
    for commit, attempt in suite_queries.attempts_elsewhere(session, run, head.gpu_type, run.head_sha):
        for test in suite_queries.tests_of(session, attempt.id):
            mine = here.get(test.node_id)
            if mine is not None and ((mine.bad and test.outcome.good) or (mine.good and test.outcome.bad)):
                found.append(
                    GpuDifference(
                        node_id=test.node_id, here=head.gpu_type or NO_GPU, here_outcome=mine,
                        there=attempt.worker.get("gpu_type") or NO_GPU, there_outcome=test.outcome, commit=commit,
                    )
                )  # fmt: skip
    return tuple(found)
