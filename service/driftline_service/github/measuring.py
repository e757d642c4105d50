"""Makes runs for pull requests and for main: which commits, when not, and what is said instead."""

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from driftline.contracts.words import RunState
from driftline.git.credential import credential_for, lent
from driftline.report.impact_text import impact_lines
from pydantic import ValidationError
from sqlalchemy.orm import Session

from driftline_service.clock import now_utc
from driftline_service.database import audit, github_queries, run_queries
from driftline_service.database.github_tables import GithubPull
from driftline_service.database.run_tables import Run
from driftline_service.github.client import Client
from driftline_service.github.commands import Command, Verb
from driftline_service.github.events import PushEvent
from driftline_service.intake.plan import plan
from driftline_service.intake.refusal import Refusal
from driftline_service.intake.request import SubmitRequest
from driftline_service.lanes import Lanes
from driftline_service.runs.cancellation import supersede
from driftline_service.runs.priority import MAIN_KEY
from driftline_service.runs.quota import check_quota
from driftline_service.runs.submission import NewRun, submit
from driftline_service.settings import Settings

NOBODY = "github"
"""Who made a run that no person asked for."""

SILENT = frozenset({"no_kernels", "same_commit", "layouts_differ"})
"""Refusals of a pull request that nobody asked to measure: it is not about kernels."""

AWAY = frozenset({"unreachable_repository", "git_timeout", "git_failed", "disk_full"})
"""Refusals that may be none in a minute: a server of git that is away says nothing of the commit."""

NOT_YET = AWAY | {"unknown_commit"}
"""Of a commit that GitHub itself has just told of: its servers for git may not have it yet."""

MOST_CONFLICTS = 3
"""Files that are named."""


UNDONE = frozenset({RunState.CANCELLED, RunState.SUPERSEDED})
"""How a run of the present head may have ended and yet have measured nothing: closed and opened again, pushed back to."""


class ForNow(str):
    """An outcome that may be another soon, if the same is tried again."""


def how_to_begin(pull: GithubPull) -> str:
    """What somebody who may write here can say so that the head is measured."""
    if pull.fork and pull.approved_sha != pull.head_sha:
        return f"First look at the commit, then say `/driftline approve {pull.head_sha}`."
    return "`/driftline run` measures the head."


def _same_code(session: Session, runs: Sequence[Run], new: NewRun) -> Run | None:
    """A judged run of the same code on both arms and the same lanes: a rebase changes commits, not always kernels."""
    for run in runs:
        trees = (run.base_kernel_tree, run.head_kernel_tree) == (new.base.kernel_tree, new.head.kernel_tree)
        if trees and run.state is RunState.DONE and run.margin == new.margin:
            lanes = {row.name for row in run_queries.lanes_of(session, run.id)}
            return run if lanes == {lane.name for lane in new.lanes} else None
    return None


class Measuring:
    """Plans and submits in the caller's transaction."""

    def __init__(self, lanes: Lanes, settings: Settings, client: Client) -> None:
        self._lanes, self._settings, self._client = lanes, settings, client

    def consider(self, session: Session, pull: GithubPull, *, asked: bool, name: str, again: bool = False) -> str:
        """Measure the head unless it was measured, is a stranger's, or touches no kernel that a lane can see.

        `again`: it is to be merged elsewhere now, so that it may have another base.
        """
        runs = github_queries.runs_of(session, pull.id)
        if not again and any(run.head_sha == pull.head_sha and run.state not in UNDONE for run in runs):
            return "measured already"
        try:
            new = self._planned(session, pull, name=name)
        except Refusal as refusal:
            return self._refused(pull, refusal, loud=asked and refusal.reason not in SILENT, again=NOT_YET)
        if not asked and (new.base.kernel_tree == new.head.kernel_tree or len(new.unreachable) == len(new.lanes)):
            return "touches no kernel that a lane can see"
        if (kept := _same_code(session, runs, new)) is not None:
            return self._keep(session, pull, kept)
        if pull.fork and pull.approved_sha != pull.head_sha:
            pull.look = True
            pull.notice = (
                "This branch is a fork's, so nothing of it has run. Somebody who may write here can let this very commit "
                f"run: `/driftline approve {pull.head_sha}`"
                + ("" if new.impact is None else "\n\n" + "\n\n".join(impact_lines(new.impact)))
            )
            return "waits for approval"
        return self._submit(session, pull, new, asked_by=NOBODY)

    def run(self, session: Session, pull: GithubPull, command: Command, *, asked_by: str) -> str:
        """Measure the head that is seen now, because a person who may asked for it."""
        if pull.fork and pull.approved_sha != pull.head_sha:
            pull.notice = how_to_begin(pull)
            return "waits for approval"
        before = github_queries.runs_of(session, pull.id)
        if command.verb is Verb.RERUN and not before:
            pull.notice = "There is no run to repeat; `/driftline run` makes one."
            return "nothing to repeat"
        try:
            new = self._planned(
                session, pull, name=f"#{pull.number}", lanes=list(command.lanes) or None, base=command.against
            )
        except Refusal as refusal:
            return self._refused(pull, refusal, loud=True)
        return self._submit(session, pull, new, asked_by=asked_by)

    def main(self, session: Session, event: PushEvent) -> str:
        """Measure a push to the main branch against what was there before, so that later runs find their base known."""
        try:
            request = SubmitRequest(repo=event.repository.clone_url, head=event.after, base=event.before)
            with self._allowed_to_read(session, request.repo):
                key = f"{MAIN_KEY}{event.after}"
                new = plan(request, lanes=self._lanes, settings=self._settings, idempotency_key=key)
        except ValidationError as error:
            return f"not measured: {error}"
        except Refusal as refusal:
            told = f"not measured: {refusal}"
            return ForNow(told) if refusal.reason in NOT_YET else told
        if new.base.kernel_tree == new.head.kernel_tree:
            return "touches no kernels"
        try:
            check_quota(session, new.repository_url, self._settings.quota, now_utc())
        except Refusal as refusal:
            return f"not measured: {refusal}"
        run_id = submit(session, replace(new, created_by=NOBODY))
        audit.note(session, NOBODY, "run_submitted", run_id, repository=new.repository_url, head=new.head.sha)
        return f"run {run_id} of {event.repository.default_branch}"

    def _planned(
        self, session: Session, pull: GithubPull, *, name: str, lanes: list[str] | None = None, base: str | None = None
    ) -> NewRun:
        """The head against where it left the branch it is to be merged into."""
        target = None if base else pull.base_ref
        try:
            request = SubmitRequest(repo=pull.clone_url, head=pull.head_sha, base=base, target=target, lanes=lanes)
        except ValidationError as error:
            first = error.errors()[0]
            raise Refusal("malformed", f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        title = " ".join(name.split())[:150]
        with self._allowed_to_read(session, request.repo):
            new = plan(request, lanes=self._lanes, settings=self._settings)
        if target is not None:
            pull.conflicts = ", ".join(new.conflicts[:MOST_CONFLICTS]) + (
                " …" if new.conflicts[MOST_CONFLICTS:] else ""
            )
        return replace(new, name=f"{pull.repository}#{pull.number} {title}")

    @contextmanager
    def _allowed_to_read(self, session: Session, url: str) -> Iterator[None]:
        """git may read the repository while the block runs, be it private."""
        source = github_queries.private_source(session, url)
        token = None if source is None else self._client.source_token(source.installation_id, source.repository)
        with lent(None if token is None else credential_for(url, token)):
            yield

    @staticmethod
    def _keep(session: Session, pull: GithubPull, run: Run) -> str:
        """The head has moved and its code has not: the run stands, and its check run moves along."""
        row = github_queries.linked(session, run.id)
        row.check_sha, row.check_run_id, row.shown, row.shown_state, row.annotated = pull.head_sha, None, None, None, 0
        pull.look, pull.notice = True, ""
        return f"same kernels as run {run.id}, which stands"

    def _submit(self, session: Session, pull: GithubPull, new: NewRun, *, asked_by: str) -> str:
        try:
            check_quota(session, new.repository_url, self._settings.quota, now_utc())
        except Refusal as refusal:
            return self._refused(pull, refusal, loud=True)
        older = github_queries.unfinished_of(session, pull.id)
        run_id = submit(session, replace(new, created_by=asked_by))
        for run in older:
            supersede(session, run.id, run_id)
        github_queries.link(session, pull.id, run_id)
        pull.look, pull.notice = True, ""
        audit.note(session, asked_by, "run_submitted", run_id, repository=new.repository_url, head=new.head.sha)
        return f"run {run_id}" + (f", {len(older)} superseded" if older else "")

    @staticmethod
    def _refused(pull: GithubPull, refusal: Refusal, *, loud: bool, again: Container[str] = AWAY) -> str:
        if loud:
            pull.look = True
            pull.notice = f"Not measured: {refusal}."
        told = f"refused: {refusal.reason}"
        return ForNow(told) if refusal.reason in again else told
