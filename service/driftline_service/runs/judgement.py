"""The last step of a run: judge its evidence and keep the verdict, with its method and the hash of its inputs."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from driftline.contracts.words import RunState
from driftline.judge import judge

from driftline_service.database import run_queries
from driftline_service.database.engine import Sessions
from driftline_service.database.event_queries import record
from driftline_service.judging import load_evidence


def judge_run(sessions: Sessions, run_id: UUID, now: datetime) -> bool:
    """Judge a run in state `judging`; False if it ended otherwise. No transaction stays open: it takes seconds."""
    with sessions() as session:
        evidence = load_evidence(session, run_id)
    view = judge(replace(evidence, state=RunState.DONE, finished_at=now))
    values = {
        "view": view.model_dump(mode="json"), "method_version": view.method_version, "inputs_hash": view.inputs_hash,
        "finished_at": now,
    }  # fmt: skip
    with sessions.begin() as session:
        if not run_queries.move_run(session, run_id, expected=(RunState.JUDGING,), state=RunState.DONE, **values):
            return False
        record(session, run_id, "run_done", view.headline.sentence)
    return True
