"""The last step of a run: judge its evidence and keep the verdict, with its method and the hash of its inputs."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from driftline.contracts.words import RunState
from driftline.judge.confirmation import wants_fresh_pair
from driftline.judge.run import judge

from driftline_service.database import run_queries
from driftline_service.database.engine import Sessions
from driftline_service.database.event_queries import record
from driftline_service.database.tables import Run
from driftline_service.judging import load_evidence
from driftline_service.runs import fresh_pairs


def judge_run(sessions: Sessions, run_id: UUID, now: datetime) -> bool:
    """Judge a run in state `judging`; False if it is not done then: it ended otherwise, or a first hit is to be measured
    once more. No transaction stays open: it takes seconds."""
    with sessions() as session:
        evidence = load_evidence(session, run_id)
        measures_noise = session.get_one(Run, run_id).measure_noise
    view = judge(replace(evidence, state=RunState.DONE, finished_at=now))
    suspected = [] if measures_noise else [
        lane.name for each, lane in zip(evidence.lanes, view.lanes, strict=True) if wants_fresh_pair(each, lane)
    ]  # fmt: skip
    if suspected:
        with sessions.begin() as session:
            fresh_pairs.plan(session, run_id, suspected, now)
        return False
    values = {
        "view": view.model_dump(mode="json"), "method_version": view.method_version, "inputs_hash": view.inputs_hash,
        "finished_at": now,
    }  # fmt: skip
    with sessions.begin() as session:
        if not run_queries.move_run(session, run_id, expected=(RunState.JUDGING,), state=RunState.DONE, **values):
            return False
        record(session, run_id, "run_done", view.headline.sentence)
    return True
