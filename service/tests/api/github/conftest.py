"""The whole of GitHub's side: a fake of its API, the real app that takes webhooks, the real desk and showcase."""

import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
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
from driftline_service.github.showcase import Showcase
from driftline_service.lanes import read_lanes
from driftline_service.settings import Settings
from pydantic import SecretStr
from sqlalchemy import select

from ..conftest import serving
from .fake_github import FakeGithub
from .fake_github import serving as github_serving

SECRET = "it's a secret to everybody"


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
    name: str
    clone_url: str = ""
    private: bool = False
    ahead: list[timedelta] = field(default_factory=lambda: [timedelta()])

    def send(self, event: str, payload: dict[str, Any], *, delivery: str | None = None, secret: str = SECRET) -> Any:
        body = json.dumps(payload).encode()
        headers = {
            "X-GitHub-Event": event, "X-GitHub-Delivery": delivery or str(uuid4()), "Content-Type": "application/json",
            "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, sha256).hexdigest(),
        }  # fmt: skip
        return self.client.post("/github/webhook", content=body, headers=headers)

    def work(self) -> None:
        """Handle what waits, then show it."""
        while self.desk.step():
            pass
        self.showcase.step()

    def common(self) -> dict[str, Any]:
        repository = {"full_name": self.name, "clone_url": self.clone_url or str(self.repository), "default_branch": "main",
                      "id": 1, "private": self.private}  # fmt: skip
        return {"installation": {"id": 77}, "repository": repository, "sender": {"login": "ann", "type": "User"}}

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
    ahead = [timedelta()]

    def clock() -> datetime:
        return datetime.now(UTC) + ahead[0]

    with github_serving(FakeGithub(writers={"maintainer"})) as github:
        client = AppClient(12, app_key, github.url)
        lanes = read_lanes(github_settings.config_path)
        desk = Desk(sessions, client, Measuring(lanes, github_settings, client), "driftline", clock)
        showcase = Showcase(sessions, client, github_settings.public_url, clock)
        name = f"acme/kernels-{uuid4().hex[:8]}"
        yield Side(webhooks, github, sessions, repository, commits, desk, showcase, name, ahead=ahead)
