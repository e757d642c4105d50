"""Keeps GitHub showing the present: looks at what each pull request should show, and sends what differs.

Nothing is queued: after a crash, an outage or a rate limit the next look sends the latest and nothing stale.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from driftline.contracts.report import RunView
from sqlalchemy.orm import Session

from driftline_service.database import github_queries
from driftline_service.database.engine import Sessions
from driftline_service.database.github_tables import GithubPull
from driftline_service.database.run_tables import Run
from driftline_service.github import rendering
from driftline_service.github.annotations import A_CALL, annotations
from driftline_service.github.client import Client, GithubDown, Gone, Uninstalled
from driftline_service.github.outlook import outlook
from driftline_service.judging import live_view
from driftline_service.logs import logger

LONGEST_BACK_OFF = timedelta(minutes=15)
FIRST_BACK_OFF = timedelta(seconds=5)
GONE_FOR = timedelta(days=1)
"""A repository that is not there is asked again so seldom."""

MOST_GONE = 7
"""Times that it is asked; then not before GitHub tells of it again."""

_log = logger("driftline.github")


class Showcase:
    """Brings comments and check runs up to date."""

    def __init__(self, sessions: Sessions, client: Client, public_url: str, clock: Callable[[], datetime]) -> None:
        self._sessions, self._client, self._url, self._clock = sessions, client, public_url.rstrip("/"), clock

    def step(self) -> int:
        """One look at every pull request that is due; how many were looked at."""
        with self._sessions() as session:
            due = github_queries.pulls_to_look_at(session, self._clock())
        for pull_id in due:
            with self._sessions.begin() as session:
                self._look_at(session, pull_id)
        return len(due)

    def _look_at(self, session: Session, pull_id: UUID) -> None:
        pull = session.get_one(GithubPull, pull_id, with_for_update=True)
        if pull.next_try_at is not None and pull.next_try_at > self._clock():
            return  # what was looked at just before ran into a limit of both
        runs = github_queries.runs_of(session, pull_id)
        try:
            views = {
                run.id: live_view(session, run.id)
                for place, run in enumerate(runs)
                if place == 0 or _moved(session, run)
            }
            self._show_comment(session, pull, views[runs[0].id] if runs else None)
            for run in runs:
                if run.id in views:
                    self._show_check(session, pull, views[run.id])
                    github_queries.linked(session, run.id).shown_state = run.state.value
        except Gone as error:
            if isinstance(error, Uninstalled) or pull.tries >= MOST_GONE:
                self._give_up(session, pull, str(error))
            else:
                self._postpone(pull, str(error), GONE_FOR)
        except GithubDown as error:
            self._postpone(pull, str(error), error.wait or min(FIRST_BACK_OFF * 2**pull.tries, LONGEST_BACK_OFF))
            if error.wait is not None:
                github_queries.leave_alone(session, pull.installation_id, self._clock() + error.wait)
        else:
            pull.look, pull.tries, pull.next_try_at, pull.last_error = False, 0, None, None

    def _show_comment(self, session: Session, pull: GithubPull, view: RunView | None) -> None:
        if view is None and not pull.notice:
            return
        row = None if view is None else github_queries.linked(session, view.run_id)
        standing = rendering.Standing(
            head=pull.head_sha, base_ref=pull.base_ref, conflicts=pull.conflicts,
            kept=row is not None and row.check_sha == pull.head_sha,
            outlook=None if view is None or view.state.finished else outlook(session, view.run_id),
        )  # fmt: skip
        body = rendering.comment(view, standing=standing, notice=pull.notice, public_url=self._url)
        if (mark := _mark(body)) == pull.shown:
            return
        pull.comment_id = self._client.comment(
            pull.installation_id, pull.repository, pull.number, body, pull.comment_id
        )
        pull.shown = mark

    def _show_check(self, session: Session, pull: GithubPull, view: RunView) -> None:
        row = github_queries.linked(session, view.run_id)
        fields = rendering.check_run(view, public_url=self._url, kept_for=row.check_sha)
        found = annotations(view)
        if (mark := _mark(fields | {"annotations": found})) == row.shown:
            return
        left = found[row.annotated :]
        for place in range(0, max(len(left), 1), A_CALL):  # what a call has told stays told if the next one fails
            told = left[place : place + A_CALL]
            sent = fields | {"output": fields["output"] | {"annotations": told}} if told else fields
            row.check_run_id = self._client.check_run(pull.installation_id, pull.repository, sent, row.check_run_id)
            row.annotated += len(told)
        row.shown = mark

    @staticmethod
    def _give_up(session: Session, pull: GithubPull, error: str) -> None:
        github_queries.show_no_more(session, pull, error)
        _log.warning("never_shown", repository=pull.repository, number=pull.number, error=error)

    def _postpone(self, pull: GithubPull, error: str, wait: timedelta) -> None:
        pull.tries, pull.last_error, pull.next_try_at = pull.tries + 1, error[:500], self._clock() + wait
        _log.warning("not_shown", repository=pull.repository, number=pull.number, error=error, again_in=str(wait))


def _moved(session: Session, run: Run) -> bool:
    """Whether the run's state is another than the one that GitHub was last shown."""
    return github_queries.linked(session, run.id).shown_state != run.state.value


def _mark(content: str | Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
