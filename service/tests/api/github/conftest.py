"""The whole of GitHub's side: a fake of its API, the real app that takes webhooks, the real desk and showcase."""

import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from secrets import randbelow
from typing import Any
from uuid import uuid4

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import GithubDelivery, GithubPull, GithubRun, Run
from driftline_service.github.client import AppClient
from driftline_service.github.desk import Desk
from driftline_service.github.measuring import Measuring
from driftline_service.github.presence import Presence
from driftline_service.github.showcase import Showcase
from driftline_service.lanes import read_lanes
from driftline_service.settings import Settings
from pydantic import SecretStr
from sqlalchemy import delete, select

from ..conftest import serving
from .fake_github import FakeGithub
from .fake_github import serving as github_serving

SECRET = "it's a secret to everybody"


def signature(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, sha256).hexdigest()


@dataclass
class Side:
    """Sends what GitHub would send for one repository, and lets Driftline work."""

    client: httpx.Client
    github: FakeGithub
    sessions: Sessions
    repository: Path
    commits: dict[str, str]
    desk: Desk
    showcase: Showcase
    presence: Presence
    name: str
    clone_url: str = ""
    private: bool = False
    installation: int = 77
    ahead: list[timedelta] = field(default_factory=lambda: [timedelta()])
    moments: Iterator[int] = field(default_factory=count)

    def send(self, event: str, payload: dict[str, Any], *, delivery: str | None = None, secret: str = SECRET) -> Any:
        body = json.dumps(payload).encode()
        headers = {
            "X-GitHub-Event": event, "X-GitHub-Delivery": delivery or str(uuid4()), "Content-Type": "application/json",
            "X-Hub-Signature-256": signature(body, secret),
        }  # fmt: skip
        return self.client.post("/github/webhook", content=body, headers=headers)

    def work(self) -> None:
        """Handle what waits, then show it."""
        while self.desk.step():
            pass
        self.showcase.step()

    def common(self) -> dict[str, Any]:
        repository = {"full_name": self.name, "clone_url": self.clone_url or str(self.repository), "default_branch": "main",
                      "id": 1, "private": self.private, "updated_at": self.moment()}  # fmt: skip
        return {
            "installation": {"id": self.installation},
            "repository": repository,
            "sender": {"login": "ann", "type": "User"},
        }

    def pull_request(self, action: str = "opened", branch: str = "refactor", **more: Any) -> dict[str, Any]:
        fork = more.pop("fork", False)
        own = self.common()["repository"]
        head = own | {"full_name": "stranger/kernels"} if fork else own
        request = {
            "number": 7, "title": "Refactor the scan", "draft": False, "state": "open", "labels": [],
            "user": {"login": "ann"}, "body": None,
            "head": {"ref": branch, "sha": self.commits[branch], "repo": head},
            "base": {"ref": "main", "sha": self.commits["main"], "repo": own},
        }  # fmt: skip
        return self.common() | {"action": action, "number": 7, "pull_request": request | more}

    def comment(self, body: str, user: str = "maintainer", **more: Any) -> dict[str, Any]:
        issue = {"number": 7, "pull_request": {"url": "u"}}
        said = {"id": 1, "body": body, "user": {"login": user, "type": "User"}}
        return self.common() | {"action": "created", "issue": issue, "comment": said} | more

    def installed(self, action: str, **more: Any) -> None:
        """The App itself, on the account that owns the repository."""
        given = {"id": self.installation, "updated_at": self.moment(), "app_id": 12, "suspended_at": None,
                 "account": {"login": "acme", "type": "Organization"}, "repository_selection": "selected"}  # fmt: skip
        repositories = [self.named()]
        sender = {"login": "owner", "type": "User"}
        payload = {"action": action, "installation": given, "repositories": repositories, "sender": sender}
        assert self.send("installation", payload | more).status_code == 202

    def sees(self, action: str, *, added: tuple[str, ...] = (), removed: tuple[str, ...] = ()) -> None:
        """The App sees more repositories of the account, or fewer."""
        payload = {
            "action": action, "installation": {"id": self.installation, "updated_at": self.moment()},
            "repository_selection": "selected",
            "repositories_added": [self.named(name) for name in added],
            "repositories_removed": [self.named(name) for name in removed], "sender": {"login": "owner"},
            "requester": None,
        }  # fmt: skip
        assert self.send("installation_repositories", payload).status_code == 202

    def moment(self) -> str:
        """A second later than the last: no two bodies of GitHub's are equal."""
        return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(self.moments))).isoformat()

    def named(self, name: str | None = None) -> dict[str, Any]:
        """As those events name a repository: no clone URL, no branch."""
        full = name or self.name
        return {"id": 1, "node_id": "R_1", "name": full.partition("/")[2], "full_name": full, "private": self.private}

    def tried(self) -> int:
        """How often GitHub was asked for anything on behalf of this installation or repository."""
        calls = [path for _, path in self.github.calls if self.name in path]
        return len(calls) + self.github.asked_for_tokens.count(self.installation)

    def pull(self) -> GithubPull:
        with self.sessions() as session:
            return session.scalars(select(GithubPull).where(GithubPull.repository == self.name)).one()

    def runs(self) -> list[Run]:
        """The pull request's runs, oldest first."""
        with self.sessions() as session:
            query = select(Run).join(GithubRun, GithubRun.run_id == Run.id).join(GithubPull)
            return list(
                session.scalars(query.where(GithubPull.repository == self.name).order_by(Run.created_at)).unique()
            )

    def outcomes(self) -> list[str | None]:
        with self.sessions() as session:
            query = select(GithubDelivery).where(GithubDelivery.payload["repository"]["full_name"].astext == self.name)
            return [row.outcome for row in session.scalars(query.order_by(GithubDelivery.received_at))]

    @property
    def shown(self) -> str:
        """The one comment."""
        assert len(self.github.comments) == 1, self.github.comments
        return next(iter(self.github.comments.values()))


@pytest.fixture(scope="session")
def app_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    return pem.decode()


@pytest.fixture(scope="session")
def github_settings(settings: Settings, app_key: str) -> Settings:
    update = {
        "github_app_id": 12, "github_private_key": SecretStr(app_key), "github_webhook_secret": SecretStr(SECRET),
    }  # fmt: skip
    return settings.model_copy(update=update)


@pytest.fixture(scope="session")
def webhooks(github_settings: Settings) -> Iterator[httpx.Client]:
    with serving(github_settings) as opened:
        yield opened


@pytest.fixture
def side(
    webhooks: httpx.Client, github_settings: Settings, sessions: Sessions, repository: Path, commits: dict[str, str],
    app_key: str,
) -> Iterator[Side]:  # fmt: skip
    with sessions.begin() as session:  # what another test left would be shown to this one's GitHub
        session.execute(delete(GithubPull))
        session.execute(delete(GithubDelivery).where(GithubDelivery.handled_at.is_(None)))
    ahead = [timedelta()]

    def clock() -> datetime:
        return datetime.now(UTC) + ahead[0]

    with github_serving(FakeGithub(writers={"maintainer"})) as github:
        client = AppClient(12, app_key, github.url)
        lanes = read_lanes(github_settings.config_path)
        desk = Desk(sessions, client, Measuring(lanes, github_settings, client), "driftline", clock)
        showcase = Showcase(sessions, client, github_settings.public_url, clock)
        name = f"acme/kernels-{uuid4().hex[:8]}"
        yield Side(
            webhooks,
            github,
            sessions,
            repository,
            commits,
            desk,
            showcase,
            Presence(sessions, client, clock),
            name,
            installation=randbelow(1 << 40),
            ahead=ahead,
        )
