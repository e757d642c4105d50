"""GET /api/v1/runs/{id}/events: the event log as server-sent events, stored ones first, then live.

`entry` (with an id to resume from) is one event of the log, `progress` is the state of the run and its jobs.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import UUID

from driftline.contracts.base import Contract
from driftline.contracts.report import EventView, JobView
from driftline.contracts.words import RunState
from fastapi import APIRouter, Header
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from sqlalchemy.exc import OperationalError

from driftline_service.api import problems
from driftline_service.api.context import Context, ContextDep
from driftline_service.api.run_list import unknown_run
from driftline_service.database.event_queries import events_of
from driftline_service.database.run_queries import run_by_id
from driftline_service.judging import job_views

router = APIRouter(prefix="/api/v1/runs/{run_id}", tags=["runs"])

KEEP_ALIVE_SECONDS = 15.0
"""Proxies close streams that are silent for 30 to 60 s. Also the longest that a lost notification can delay news."""

LARGEST_EVENT_ID = 2**63 - 1
"""What the column of event ids holds."""

BREATH_SECONDS = 0.5
"""A worker's batches come several a second; nobody reads that fast."""


class RunProgress(Contract):
    """Data of a `progress` event."""

    state: RunState
    jobs: list[JobView]


@dataclass(slots=True)
class _Reader:
    """What one client was sent. Ids are kept: events of two transactions may commit out of their ids' order."""

    run_id: UUID
    after: int
    sent: set[int] = field(default_factory=set)
    progress: str = ""

    def news(self, context: Context) -> tuple[list[str], bool]:
        """Messages not sent yet, and whether the run is finished. State first: its last event comes with it."""
        with context.sessions() as session:
            run = run_by_id(session, self.run_id)
            if run is None:
                raise unknown_run(self.run_id)
            jobs = list(job_views(session, self.run_id))
            events = events_of(session, self.run_id, after=self.after)
            entries = [
                _message("entry", EventView(at=event.at, kind=event.kind, message=event.message), identifier=event.id)
                for event in events
                if event.id not in self.sent
            ]
            self.sent |= {event.id for event in events}
        progress = _message("progress", RunProgress(state=run.state, jobs=jobs))
        changed = progress != self.progress
        self.progress = progress
        return entries + ([progress] if changed else []), run.state.finished


def _described(name: str, data: type[Contract], **more: Any) -> dict[str, Any]:
    """One kind of event as JSON schema. What `data` is made of stands in the document already, beside RunView."""
    schema = data.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    told = {"type": "string", "contentMediaType": "application/json", "contentSchema": schema}
    properties = {"event": {"const": name}, "data": told} | more
    return {"type": "object", "properties": properties, "required": list(properties)}


STREAM = {
    "text/event-stream": {
        "itemSchema": {
            "oneOf": [_described("entry", EventView, id={"type": "string"}), _described("progress", RunProgress)]
        }
    }
}
"""As FastAPI describes streams, by the word of OpenAPI 3.2."""


@router.get(
    "/events", response_class=StreamingResponse, responses=problems.responses(404, 422) | {200: {"content": STREAM}}
)
async def stream_events(
    run_id: UUID, found: ContextDep, last_event_id: Annotated[int | None, Header(ge=0, le=LARGEST_EVENT_ID)] = None
) -> StreamingResponse:
    """The run's log and progress as they come. `Last-Event-ID` resumes after that entry; it ends with the run."""
    reader = _Reader(run_id, after=last_event_id or 0)
    first = await run_in_threadpool(reader.news, found)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(reader, found, first), media_type="text/event-stream", headers=headers)


async def _stream(reader: _Reader, found: Context, first: tuple[list[str], bool]) -> AsyncIterator[str]:
    with found.wakeups.of(reader.run_id) as woken:
        messages, finished = first
        while True:
            for message in messages:
                yield message
            if finished:
                return
            if not await _wait(woken):
                yield ": keep-alive\n\n"
            try:
                messages, finished = await run_in_threadpool(reader.news, found)
            except OperationalError:
                return  # the database went away: the client reconnects with its Last-Event-ID


async def _wait(woken: asyncio.Event) -> bool:
    """Whether there were news; takes a breath in any case."""
    started = time.monotonic()
    try:
        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
            await woken.wait()
    except TimeoutError:
        return False
    await asyncio.sleep(max(0.0, BREATH_SECONDS - (time.monotonic() - started)))
    woken.clear()
    return True


def _message(name: str, data: Contract, *, identifier: int | None = None) -> str:
    place = "" if identifier is None else f"id: {identifier}\n"
    return f"{place}event: {name}\ndata: {data.model_dump_json()}\n\n"
