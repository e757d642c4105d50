"""Whether the App still is where the runs under way came from: a webhook that says it is not may be lost.

GitHub is asked itself, of each repository of which something runs. Nothing else ends here, and nothing is shown.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from driftline_service.database import github_queries
from driftline_service.database.engine import Sessions
from driftline_service.database.github_queries import Place
from driftline_service.github import installations
from driftline_service.github.client import Client, GithubDown
from driftline_service.logs import logger

PAUSE = timedelta(seconds=10)
"""Between two looks at what runs."""

SELDOM = timedelta(minutes=30)
"""Between two questions about a repository: 1,000 of them take a fifth of what GitHub lets an App ask in an hour."""

SOON = timedelta(minutes=1)
"""As `SELDOM`, where something speaks against it: GitHub did not let us show a run, or said once that the App is not there."""

AT_ONCE = 5
"""Repositories of one look, so that a webhook that comes meanwhile does not wait long."""

REST = timedelta(minutes=5)
"""After an answer that is none."""

REMOVED = "GitHub says that the App is not installed on this repository any more"
SUSPENDED = "GitHub says that the App is suspended"

_log = logger("driftline.github")


class Presence:
    """Ends what came from a repository once GitHub has said twice that the App is gone from it. What was asked when is kept
    in memory alone: a new process asks again."""

    def __init__(self, sessions: Sessions, client: Client, clock: Callable[[], datetime]) -> None:
        self._sessions, self._client, self._clock = sessions, client, clock
        self._next = clock()
        self._asked: dict[Place, datetime] = {}
        self._doubted: set[Place] = set()

    def step(self) -> int:
        """One look, if it is due; of how many repositories GitHub was asked."""
        now = self._clock()
        if now < self._next:
            return 0
        self._next = now + PAUSE
        with self._sessions() as session:
            running = github_queries.places_that_run(session)
        self._asked = {place: at for place, at in self._asked.items() if place in running}
        self._doubted &= running.keys()
        due = [place for place, unseen in running.items() if self._due(place, now, unseen=unseen)][:AT_ONCE]
        for place in due:
            self._asked[place] = now  # answered or not: one that never is answered does not stand in the others' way
            try:
                self._look_at(place, now)
            except GithubDown as error:
                self._next = now + (error.wait or REST)
                _log.warning("presence_unknown", repository=place.repository, error=str(error))
                break
        return len(due)

    def _due(self, place: Place, now: datetime, *, unseen: bool) -> bool:
        last = self._asked.get(place)
        return last is None or now - last >= (SOON if unseen or place in self._doubted else SELDOM)

    def _look_at(self, place: Place, now: datetime) -> None:
        seen = self._client.installation_of(place.repository)
        if seen is not None and not seen.suspended:
            self._doubted.discard(place)
        elif place not in self._doubted:
            self._doubted.add(place)
        else:
            why = REMOVED if seen is None else SUSPENDED
            with self._sessions.begin() as session:
                told = installations.leave(session, place.installation_id, [place.repository], why, now=now, before=now)
            _log.warning("app_is_gone", repository=place.repository, outcome=told)
