"""Handles kept deliveries one by one: what a webhook means, and what is done about it. Shows nothing: showcase.py does.

Each delivery is one transaction. Git and GitHub are asked inside it, since a delivery waits for both anyway and its pull
request is locked so that the next one about it comes after.
"""

from collections.abc import Callable
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from driftline_service.database import github_queries
from driftline_service.database.engine import Sessions
from driftline_service.database.github_tables import GithubDelivery, GithubPull
from driftline_service.github import events, installations
from driftline_service.github.client import Client, GithubDown, Uninstalled
from driftline_service.github.commands import FREE, HELP, Command, Misunderstood, Verb, parse
from driftline_service.github.measuring import ForNow, Measuring, how_to_begin
from driftline_service.logs import logger
from driftline_service.runs.cancellation import cancel

ACTIONS = frozenset({"opened", "reopened", "synchronize", "ready_for_review", "labeled"})
"""Actions on a pull request after which its head may have to be measured."""

MOST_BUGS = 5
"""A delivery in whose handling something broke so often is left as it is, with its error."""

MOST_FOR_NOW = 5
"""Tries after a repository that git cannot read, within some two minutes: somebody may wait for the answer."""

_log = logger("driftline.github")


class Desk:
    """Works through the deliveries that wait."""

    def __init__(
        self, sessions: Sessions, client: Client, measuring: Measuring, label: str, clock: Callable[[], datetime]
    ) -> None:
        self._sessions, self._client, self._measuring = sessions, client, measuring
        self._label, self._clock = label, clock

    def step(self) -> bool:
        """Handle one delivery; False if none is due. One that fails is tried again later."""
        with self._sessions.begin() as session:
            delivery = github_queries.next_delivery(session, self._clock())
            if delivery is None:
                return False
            delivery_id = delivery.id
            outcome = self._tried(session, delivery)
            if outcome is None:
                return True
            delivery.handled_at, delivery.outcome = self._clock(), outcome
        _log.info("delivery_handled", delivery=delivery_id, outcome=outcome)
        return True

    def _tried(self, session: Session, delivery: GithubDelivery) -> str | None:
        """What came of it; None if it is put off, and nothing was done but to note why."""
        try:
            with session.begin_nested():
                outcome = self._handle(session, delivery)
                if isinstance(outcome, ForNow) and delivery.tries < MOST_FOR_NOW:
                    raise GithubDown(outcome)  # back to where it was; the last try tells whoever asked
                return outcome
        except Uninstalled as error:
            return f"dropped: {error}"
        except GithubDown as error:
            delivery.outcome = str(error)
            github_queries.put_off(delivery, self._clock() + (error.wait or github_queries.AGAIN))
            _log.warning("delivery_postponed", delivery=delivery.id, error=str(error))
        except DBAPIError:
            raise
        except Exception as error:  # a bug in one event's handling: named, and not in the way of the others
            delivery.outcome = f"{type(error).__name__}: {error}"
            github_queries.put_off(delivery, self._clock())
            delivery.tries = delivery.tries if delivery.tries < MOST_BUGS else github_queries.MOST_TRIES
            _log.exception("delivery_failed", delivery=delivery.id)
        return None

    def _handle(self, session: Session, delivery: GithubDelivery) -> str:
        try:
            event = events.read(delivery.event, delivery.payload)
        except ValidationError as error:
            first = error.errors()[0]
            if first["loc"] == ("installation",) and first["type"] == "missing":
                return "not the App's: it names no installation, as webhooks of a repository or organization do"
            return f"not understood: {error.error_count()} fields, first {first['loc']}"
        match event:
            case events.InstallationEvent() | events.InstallationRepositoriesEvent():
                return installations.changed(session, event, delivery, self._clock())
            case events.FromRepository():
                self._remember(session, event)
        match event:
            case events.PullRequestEvent():
                return self._pull_request(session, event)
            case events.IssueCommentEvent():
                return self._comment(session, event)
            case events.CheckRunEvent() if event.action == "rerequested":
                return self._check_run(session, event)
            case events.PushEvent():
                return self._push(session, event)
        return "nothing to do"

    @staticmethod
    def _remember(session: Session, event: events.FromRepository) -> None:
        """Through which installation the repository is read, if it is private."""
        found = event.repository
        github_queries.remember_source(
            session, url=found.clone_url, repository=found.full_name, installation_id=event.installation.id,
            private=found.private,
        )  # fmt: skip

    def _pull_request(self, session: Session, event: events.PullRequestEvent) -> str:
        request = event.pull_request
        pull = github_queries.pull_of(session, event.repository.full_name, request.number)
        if pull is None:
            pull = GithubPull(repository=event.repository.full_name, number=request.number)
            session.add(pull)
        moved = pull.head_sha != request.head.sha
        retargeted = event.action == "edited" and "base" in event.changes
        pull.installation_id, pull.clone_url = event.installation.id, event.repository.clone_url
        pull.base_ref, pull.head_sha, pull.fork = request.base.ref, request.head.sha, request.fork
        pull.open = request.state == "open"
        session.flush()
        if not pull.open:
            return self._stop(session, pull, "the pull request was closed")
        if moved or retargeted:
            pull.notice = ""
        outcome = self._considered(session, pull, event, retargeted=retargeted)
        if moved:
            self._leave_behind(session, pull)
        return outcome

    def _considered(
        self, session: Session, pull: GithubPull, event: events.PullRequestEvent, *, retargeted: bool
    ) -> str:
        request = event.pull_request
        if (event.action not in ACTIONS and not retargeted) or request.draft:
            return "noted"
        if event.action == "labeled" and (event.label is None or event.label.name != self._label):
            return "another label"
        labelled = any(label.name == self._label for label in request.labels)
        return self._measuring.consider(session, pull, asked=labelled, name=request.title, again=retargeted)

    @staticmethod
    def _leave_behind(session: Session, pull: GithubPull) -> None:
        """A push ends what runs of older heads, also where nothing new is run: of a draft, of a fork, without kernels."""
        for run in github_queries.unfinished_of(session, pull.id):
            if run.head_sha != pull.head_sha:
                cancel(session, run.id, f"{pull.head_sha} was pushed")

    def _comment(self, session: Session, event: events.IssueCommentEvent) -> str:
        """Only a newly made comment of a person on a pull request that is known can command."""
        author = event.comment.user
        if event.action != "created" or event.issue.pull_request is None or author is None or author.type == "Bot":
            return "no command"
        command = parse(event.comment.body)
        if command is None:
            return "no command"
        pull = github_queries.pull_of(session, event.repository.full_name, event.issue.number)
        if pull is None:
            return "a pull request that no webhook told of; a push to it makes it known"
        pull.look = True
        user = author.login
        if isinstance(command, Misunderstood):
            pull.notice = f"@{user}: {command.reason}.\n\n{command.help}"
            return "misunderstood"
        if command.verb not in FREE and not self._client.may_write(pull.installation_id, pull.repository, user):
            pull.notice = f"@{user}: `{command.verb}` is for those who may write to this repository."
            return "not permitted"
        return self._obey(session, pull, command, user)

    def _obey(self, session: Session, pull: GithubPull, command: Command, user: str) -> str:
        pull.notice = ""
        match command.verb:
            case Verb.CANCEL:
                if not github_queries.unfinished_of(session, pull.id):
                    pull.notice = f"@{user}: nothing runs for this pull request."
                return self._stop(session, pull, f"cancelled by @{user}")
            case Verb.APPROVE:
                return self._approve(session, pull, command, user)
            case Verb.RUN | Verb.RERUN:
                return self._measuring.run(session, pull, command, asked_by=user)
            case Verb.HELP:
                pull.notice = HELP
            case Verb.EXPLAIN:
                pull.notice = EXPLANATION
            case Verb.STATUS if not github_queries.runs_of(session, pull.id):
                pull.notice = f"@{user}: nothing was measured yet. {how_to_begin(pull)}"
        return f"{command.verb} for {user}"

    def _approve(self, session: Session, pull: GithubPull, command: Command, user: str) -> str:
        if command.sha != pull.head_sha:
            pull.notice = (
                f"@{user}: the head is `{pull.head_sha}` now, not `{command.sha}`. Look at it, and approve that one."
            )
            return "approved another commit"
        pull.approved_sha = command.sha
        return self._measuring.consider(session, pull, asked=True, name=f"#{pull.number}")

    def _check_run(self, session: Session, event: events.CheckRunEvent) -> str:
        pull = github_queries.pull_of_check(session, event.repository.full_name, event.check_run.id)
        if pull is None:
            return "a check run of somebody else"
        return self._measuring.run(session, pull, Command(Verb.RERUN), asked_by=event.sender.login)

    def _push(self, session: Session, event: events.PushEvent) -> str:
        if event.deleted or event.ref != f"refs/heads/{event.repository.default_branch}":
            return "not the main branch"
        return self._measuring.main(session, event)

    @staticmethod
    def _stop(session: Session, pull: GithubPull, reason: str) -> str:
        pull.look = True
        stopped = [cancel(session, run.id, reason) for run in github_queries.unfinished_of(session, pull.id)]
        return f"{sum(stopped)} runs stopped: {reason}"


EXPLANATION = """Every question is asked of both commits, base and head, in the same order, and only the questions whose answer
changed decide: an exact McNemar test, Holm over all cells, and an interval that must lie inside the margin for `equivalent`.
The teacher-forced log-probability sees changes in the kernels long before answers change. `underpowered` says what would
settle it; `not_comparable` is never green."""
