"""The few requests that are made of GitHub's REST API, as the App's installation on a repository."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any, Protocol

from githubkit import AppAuthStrategy, AppInstallationAuthStrategy, GitHub
from githubkit.exception import GitHubException, RateLimitExceeded, RequestError, RequestFailed

from driftline_service.github.rendering import MARKER

PAGE = 100
"""The most that GitHub lists at once."""

WRITERS = frozenset({"admin", "maintain", "write"})
TIMEOUT_SECONDS = 20.0


class GithubDown(Exception):  # noqa: N818 - a condition that passes
    """GitHub did not answer, refused for now, or the App is not allowed to; to be tried again later.

    `wait` is how long GitHub asked to be left alone, of a rate limit; else None.
    """

    def __init__(self, message: str, wait: timedelta | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class Gone(Exception):  # noqa: N818
    """What was asked about is not there any more: a deleted comment or repository."""


class Uninstalled(Gone):
    """The App was removed from there, or is suspended: nobody may speak for it until GitHub tells of it again."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The App is there, as GitHub says."""

    suspended: bool


class Client(Protocol):
    """What the desk and the showcase need; repositories are `owner/name`."""

    def source_token(self, installation: int, repository: str) -> str: ...
    def installation_of(self, repository: str) -> "Installed | None": ...
    def may_write(self, installation: int, repository: str, user: str) -> bool: ...
    def comment(self, installation: int, repository: str, number: int, body: str, comment_id: int | None) -> int: ...
    def check_run(
        self, installation: int, repository: str, fields: Mapping[str, Any], check_run_id: int | None
    ) -> int: ...


class AppClient:
    """Speaks as the App. Tokens of installations are fetched and renewed by githubkit. Nothing is tried again
    here: whoever asks does so at its own pace, and a rate limit says after how long."""

    def __init__(self, app_id: int, private_key: str, api_url: str) -> None:
        self._app_id, self._key, self._url = app_id, private_key, api_url
        self._installations: dict[int, GitHub[AppInstallationAuthStrategy]] = {}

    def source_token(self, installation: int, repository: str) -> str:
        """A token that may read this one repository's contents and nothing else; GitHub lets it live for an hour.

        Raises:
            GithubDown: if there is none to be had just now.
            Uninstalled: if there will be none.
        """
        wanted = {"repositories": [repository.partition("/")[2]], "permissions": {"contents": "read"}}
        path = f"/app/installations/{installation}/access_tokens"
        try:
            return str(self._as_app().request("POST", path, json=wanted).json()["token"])
        except GitHubException as error:
            raise _trouble(f"POST {path}", error) from error

    def installation_of(self, repository: str) -> Installed | None:
        """The App's installation on a repository; None if there is none, or no such repository.

        Raises:
            GithubDown: if it could not be asked.
        """
        path = f"/repos/{repository}/installation"
        try:
            answer = self._as_app().request("GET", path).json()
        except GitHubException as error:
            trouble = _trouble(f"GET {path}", error)
            if isinstance(trouble, Gone):
                return None
            raise trouble from error
        return Installed(suspended=answer.get("suspended_at") is not None)

    def may_write(self, installation: int, repository: str, user: str) -> bool:
        """Whether a user may write to the repository.

        Raises:
            GithubDown: if it could not be asked.
        """
        try:
            answer = self._send(installation, "GET", f"/repos/{repository}/collaborators/{user}/permission")
        except Gone:
            return False
        return answer.get("role_name") in WRITERS or answer.get("permission") in WRITERS

    def comment(self, installation: int, repository: str, number: int, body: str, comment_id: int | None) -> int:
        """Write the one comment anew, or for the first time; its id. A comment somebody deleted is written again.

        Raises:
            GithubDown: if it could not be written.
        """
        if comment_id is not None:
            try:
                self._send(installation, "PATCH", f"/repos/{repository}/issues/comments/{comment_id}", {"body": body})
            except Gone:
                pass
            else:
                return comment_id
        path = f"/repos/{repository}/issues/{number}/comments"
        if comment_id is None and (earlier := self._unanswered_comment(installation, path)) is not None:
            return self.comment(installation, repository, number, body, earlier)
        return int(self._send(installation, "POST", path, {"body": body})["id"])

    def check_run(self, installation: int, repository: str, fields: Mapping[str, Any], check_run_id: int | None) -> int:
        """Make or update a check run; its id.

        Raises:
            GithubDown: if it could not be written.
        """
        if check_run_id is not None:
            self._send(installation, "PATCH", f"/repos/{repository}/check-runs/{check_run_id}", fields)
            return check_run_id
        earlier = self._unanswered_check(installation, repository, fields)
        if earlier is not None:
            return self.check_run(installation, repository, fields, earlier)
        return int(self._send(installation, "POST", f"/repos/{repository}/check-runs", fields)["id"])

    def _unanswered_comment(self, installation: int, path: str) -> int | None:
        """The App's comment that GitHub wrote although its answer never came: a second one would stand beside it."""
        for page in count(1):
            found: Any = self._send(installation, "GET", f"{path}?per_page={PAGE}&page={page}")
            for one in found:
                if (one.get("performed_via_github_app") or {}).get("id") == self._app_id and MARKER in one["body"]:
                    return int(one["id"])
            if len(found) < PAGE:
                break
        return None

    def _unanswered_check(self, installation: int, repository: str, fields: Mapping[str, Any]) -> int | None:
        """As for the comment: a check run is told by the run's id, which it carries as `external_id`."""
        query = f"check_name={fields['name']}&app_id={self._app_id}&filter=all&per_page={PAGE}"
        found = self._send(installation, "GET", f"/repos/{repository}/commits/{fields['head_sha']}/check-runs?{query}")
        same = (one["id"] for one in found["check_runs"] if one["external_id"] == fields["external_id"])
        return next((int(one) for one in same), None)

    def _send(self, installation: int, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        try:
            answer = self._of(installation).request(method, path, json=None if body is None else dict(body))
        except GitHubException as error:
            raise _trouble(f"{method} {path}", error) from error
        read: dict[str, Any] = answer.json()
        return read

    def _as_app(self) -> GitHub[AppAuthStrategy]:
        return GitHub(AppAuthStrategy(self._app_id, self._key), base_url=self._url, timeout=TIMEOUT_SECONDS,
                      http_cache=False, auto_retry=False)  # fmt: skip

    def _of(self, installation: int) -> "GitHub[AppInstallationAuthStrategy]":
        if installation not in self._installations:
            strategy = AppInstallationAuthStrategy(self._app_id, self._key, installation)
            self._installations[installation] = GitHub(
                strategy, base_url=self._url, timeout=TIMEOUT_SECONDS, http_cache=False, auto_retry=False
            )
        return self._installations[installation]


def _trouble(what: str, error: GitHubException) -> GithubDown | Gone:
    """What it means for whoever asked that GitHub did not do it."""
    if isinstance(error, RequestError) and isinstance(error.exc, RequestFailed):
        error = error.exc  # how githubkit gives on what its own request for a token was answered
    if isinstance(error, RateLimitExceeded):
        return GithubDown(f"{what}: rate limit", error.retry_after)
    if not isinstance(error, RequestFailed):
        return GithubDown(f"{what}: {type(error).__name__} {error}")
    status = error.response.status_code
    if error.request.url.path.endswith("/access_tokens"):  # the text is not shown: an answer about tokens may hold one
        refused = status in (404, 422) or (status == 403 and "suspended" in error.response.text)
        return Uninstalled(f"{what}: no token, {status}") if refused else GithubDown(f"{what}: no token, {status}")
    if status in (404, 410):
        return Gone(f"{what}: {status}")
    return GithubDown(f"{what}: {status} {error.response.text[:200]}")
