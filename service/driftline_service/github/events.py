"""The parts of GitHub's webhook payloads that are looked at. What is not named here is never read."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

Sha = str


class Part(BaseModel):
    """GitHub adds fields at will, and tells null of what is not there: a person whose account is gone, above all."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_untold(cls, told: object) -> object:
        return {name: value for name, value in told.items() if value is not None} if isinstance(told, dict) else told


class Installation(Part):
    id: int


class Repository(Part):
    full_name: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    clone_url: str
    default_branch: str
    private: bool = False


class User(Part):
    login: str
    type: str = "User"


class Label(Part):
    name: str


class Side(Part):
    """A pull request's head or base. The repository of a head is null once its fork was deleted."""

    ref: str
    sha: str = Field(pattern=r"^[0-9a-f]{40}$")
    repo: Repository | None = None


class PullRequest(Part):
    number: int
    title: str
    draft: bool = False
    state: Literal["open", "closed"]
    labels: list[Label] = []
    head: Side
    base: Side

    @property
    def fork(self) -> bool:
        return self.head.repo is None or self.base.repo is None or self.head.repo.full_name != self.base.repo.full_name


class FromRepository(Part):
    action: str = ""
    installation: Installation
    repository: Repository


class PullRequestEvent(FromRepository):
    pull_request: PullRequest
    changes: dict[str, object] = {}
    """of action `edited`: what was another before"""
    label: Label | None = None


class Issue(Part):
    number: int
    pull_request: dict[str, object] | None = None


class Comment(Part):
    id: int
    body: str = ""
    user: User | None = None


class IssueCommentEvent(FromRepository):
    issue: Issue
    comment: Comment


class PushEvent(FromRepository):
    ref: str
    before: str
    after: str
    deleted: bool = False


class CheckRun(Part):
    id: int
    head_sha: str


class CheckRunEvent(FromRepository):
    check_run: CheckRun
    sender: User


class NamedRepository(Part):
    """Of one that is taken away GitHub may tell its id alone."""

    full_name: str = ""


class InstallationEvent(Part):
    """Of the App itself, on an account: installed, removed, suspended."""

    action: str
    installation: Installation
    repositories: list[NamedRepository] = []


class InstallationRepositoriesEvent(Part):
    """The App stays, and sees more repositories or fewer."""

    action: str
    installation: Installation
    repositories_added: list[NamedRepository] = []
    repositories_removed: list[NamedRepository] = []


Event = (
    PullRequestEvent | IssueCommentEvent | PushEvent | CheckRunEvent | InstallationEvent | InstallationRepositoriesEvent
)

_KNOWN: dict[str, TypeAdapter[Event]] = {
    "pull_request": TypeAdapter(PullRequestEvent),
    "issue_comment": TypeAdapter(IssueCommentEvent),
    "push": TypeAdapter(PushEvent),
    "check_run": TypeAdapter(CheckRunEvent),
    "installation": TypeAdapter(InstallationEvent),
    "installation_repositories": TypeAdapter(InstallationRepositoriesEvent),
}


def read(name: str, payload: object) -> Event | None:
    """The event, or None if this kind of event changes nothing here.

    Raises:
        pydantic.ValidationError: if the payload is not of that kind.
    """
    adapter = _KNOWN.get(name)
    return None if adapter is None else adapter.validate_python(payload)
