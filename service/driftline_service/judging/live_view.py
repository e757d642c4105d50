"""What readers see of a run: the stored judgement once it is done, else a judgement of what is there."""

from datetime import UTC, datetime
from uuid import UUID

from driftline.contracts.impact import ImpactView
from driftline.contracts.report import RunView
from driftline.contracts.words import RunState
from driftline.judge.run import judge
from sqlalchemy.orm import Session

from driftline_service.database.tables import Run
from driftline_service.judging.evidence import event_views, load_evidence
from driftline_service.runs.forecast import remaining_seconds


def live_view(session: Session, run_id: UUID) -> RunView:
    """The run as its page shows it. The log is always the latest: a verdict's own event comes after the verdict.

    Raises:
        sqlalchemy.exc.NoResultFound: if there is no such run.
    """
    run = session.get_one(Run, run_id)
    if run.state is not RunState.DONE or run.view is None:
        view = judge(load_evidence(session, run_id, with_noise=False))
        left = None if run.state.finished else remaining_seconds(session, run_id, datetime.now(UTC))
        return view.model_copy(update={"remaining_seconds": left, "impact": _impact(run)})
    view = RunView.model_validate(run.view)
    return view.model_copy(update={"events": list(event_views(session, run_id)), "impact": _impact(run)})


def _impact(run: Run) -> ImpactView | None:
    return None if run.impact is None else ImpactView.model_validate(run.impact)
