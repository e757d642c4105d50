"""Follows one run until it is finished, then prints its report. Reconnects as often as the server comes back."""

import json
import time
from dataclasses import dataclass, field

import httpx
import typer
from pydantic import TypeAdapter

from driftline.cli.event_stream import ServerEvent, read_events
from driftline.cli.failure import EXIT_NOT_COMPARABLE, EXIT_REGRESSED, CommandError, ServerAwayError
from driftline.cli.progress import Display, display
from driftline.cli.server import Server
from driftline.contracts.report import JobView, RunView
from driftline.contracts.words import KernelCheckResult, RunState, Verdict

PATIENCE_SECONDS = 120.0
"""A server that was killed takes about 10 s to come back; after this long it will not."""

PAUSE_SECONDS = 1.0
JOBS: TypeAdapter[list[JobView]] = TypeAdapter(list[JobView])


@dataclass(slots=True)
class _Place:
    """How far the stream was read."""

    last_event_id: str | None = None
    state: RunState = RunState.QUEUED
    heard: float = field(default_factory=time.monotonic)


def watch_run(server: Server, run_id: str) -> int:
    """Show progress until the run is finished, print its report, return the exit code.

    Raises:
        CommandError: if the run ends without a judgement, or the server stays away.
    """
    with display() as shown:
        state = _follow(server, run_id, shown)
    view = RunView.model_validate(server.get(f"/api/v1/runs/{run_id}"))
    if state is not RunState.DONE:
        raise not_judged(view)
    typer.echo(server.get_text(f"/api/v1/runs/{run_id}/report", format="markdown"))
    return exit_code(view)


def not_judged(view: RunView) -> CommandError:
    """What to say of a run that ended without a judgement: the last event tells why."""
    why = f": {view.events[-1].message}" if view.events else ""
    return CommandError(f"run {view.run_id} is {view.state}{why}", exit_code=EXIT_NOT_COMPARABLE)


def exit_code(view: RunView) -> int:
    """0 no drift seen, 2 regressed, broken or kernel check failed, 3 not comparable or nothing to compare."""
    check = view.kernel_check.result
    if view.headline.color == "red" or view.verdict is Verdict.REGRESSED or check is KernelCheckResult.FAILED:
        return EXIT_REGRESSED
    if view.verdict in (None, Verdict.NOT_COMPARABLE) or check is KernelCheckResult.NOT_JUDGED:
        return EXIT_NOT_COMPARABLE
    return 0


def _follow(server: Server, run_id: str, shown: Display) -> RunState:
    place = _Place()
    while not place.state.finished:
        try:
            with server.stream(f"/api/v1/runs/{run_id}/events", last_event_id=place.last_event_id) as lines:
                for event in read_events(lines):
                    place.heard = time.monotonic()
                    _take(event, place, shown)
        except (httpx.TransportError, ServerAwayError) as error:
            if time.monotonic() - place.heard > PATIENCE_SECONDS:
                told = f" ({error})" if isinstance(error, ServerAwayError) else ""
                raise CommandError(
                    f"{server.url} has not answered for {PATIENCE_SECONDS:.0f} s{told}; the run goes on when it does"
                ) from error
        if not place.state.finished:
            time.sleep(PAUSE_SECONDS)
    return place.state


def _take(event: ServerEvent, place: _Place, shown: Display) -> None:
    place.last_event_id = event.id or place.last_event_id
    body = json.loads(event.data)
    if event.name == "entry":
        shown.say(f"{body['at'][11:19]} {body['message']}")
    elif event.name == "progress":
        place.state = RunState(body["state"])
        shown.update(place.state, JOBS.validate_python(body["jobs"]))
