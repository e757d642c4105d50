"""Everything a process of the service is told from outside. Nothing else reads the environment."""

from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

ENVIRONMENT_PREFIX = "DRIFTLINE_"

SECRETS = ("database_url", "broker_url", "admin_token", "github_webhook_secret", "github_private_key")
"""May come from a file instead, named by `<setting>_file`: a file is not shown by `docker inspect`."""

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a minute, all of which may come at once; 0 is no limit."""

    token: int
    address: int

    def __bool__(self) -> bool:
        return bool(self.token or self.address)


@dataclass(frozen=True, slots=True)
class Quota:
    """What one repository may ask of everybody's machines; 0 is no limit."""

    runs_a_day: int = 0
    unfinished_jobs: int = 0


class Settings(BaseSettings):
    """One process's settings, from environment variables `DRIFTLINE_…` or keyword arguments.

    Raises:
        pydantic.ValidationError: if a setting is missing or wrong, or a secret's file cannot be read.
    """

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, frozen=True, extra="ignore")

    database_url: SecretStr = Field(description="SQLAlchemy URL, e.g. postgresql+psycopg://driftline@db/driftline")
    broker_url: SecretStr = Field(description="redis://… or filesystem:///absolute/folder")
    data_dir: Path = Field(description="Folder of mirrors and, embedded, of the database")
    config_path: Path = Field(default=Path("driftline.toml"), description="The lanes")
    assets_root: Path = Field(default=Path(), description="Folder below which driftline.toml's files are")

    dashboards_dir: Path = Field(default=Path("dashboards"), description="Templates and static files of the pages")

    admin_token: SecretStr | None = Field(default=None, description="The bearer token that may write")
    admin_token_sha256: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{64}$", description="Its sha256, instead of itself"
    )

    bind_host: str = "127.0.0.1"
    bind_port: int = Field(default=8642, ge=0, le=65535)
    listen_fd: int | None = Field(
        default=None, ge=3, description="A listening socket passed in, instead of host and port"
    )
    public_url: str = Field(
        default="http://127.0.0.1:8642", description="How readers reach the service; links start with it"
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(), description="Host names besides public_url's that requests may name"
    )
    allow_local_repositories: bool = Field(default=False, description="May a run name a repository on this disk?")

    private: bool = Field(default=False, description="Reading needs a token too; pages ask for it at /login")

    github_app_id: int | None = Field(default=None, ge=1, description="The GitHub App's id; unset: no GitHub")
    github_private_key: SecretStr | None = Field(default=None, description="The App's private key, PEM")
    github_webhook_secret: SecretStr | None = Field(default=None, description="What its webhooks are signed with")
    github_api_url: str = Field(default="https://api.github.com", pattern=r"^https?://", description="REST API")
    github_label: str = Field(default="driftline", description="A pull request so labelled is always measured")

    lease_seconds: int = Field(default=60, ge=5, description="An attempt unheard of for so long is lost")
    max_body_bytes: int = Field(default=MEGABYTE, ge=1024, description="Largest request body of the public API")
    max_worker_body_bytes: int = Field(
        default=64 * MEGABYTE, ge=MEGABYTE, description="Largest batch a worker may report"
    )
    max_import_bytes: int = Field(
        default=256 * MEGABYTE, ge=1024, description="Largest archive of lm-eval's files that may be uploaded"
    )
    max_import_unpacked_bytes: int = Field(
        default=1024 * MEGABYTE, ge=1024, description="What such an archive may hold, unpacked"
    )
    token_requests: int = Field(default=0, ge=0, description="Requests a minute of one API token; 0: no limit")
    address_requests: int = Field(default=0, ge=0, description="Requests a minute of one address; 0: no limit")
    trusted_proxies: tuple[str, ...] = Field(
        default=("127.0.0.1",), description="Addresses or networks whose X-Forwarded-For says who asks"
    )
    runs_a_day: int = Field(default=0, ge=0, description="Runs of one repository within 24 hours; 0: no limit")
    unfinished_jobs: int = Field(
        default=0, ge=0, description="Jobs of one repository beyond which it gets no further run; 0: no limit"
    )
    pulse_file: Path | None = Field(default=None, description="What the reconciler touches at each look: pulse.py")
    log_format: Literal["json", "console"] = "json"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    embedded: bool = Field(default=False, description="Set by the embedded supervisor; pages say so")

    @model_validator(mode="before")
    @classmethod
    def _read_secret_files(cls, values: dict[str, Any]) -> dict[str, Any]:
        return _with_secrets_from_files(values)

    @model_validator(mode="after")
    def _one_admin_token(self) -> Self:
        if self.admin_token is not None and self.admin_token_sha256 is not None:
            raise ValueError("give the admin token or its sha256, not both")
        return self

    @model_validator(mode="after")
    def _whole_github(self) -> Self:
        if (self.github_app_id is None) != (self.github_private_key is None):
            raise ValueError("a GitHub App needs both github_app_id and github_private_key")
        return self

    @model_validator(mode="after")
    def _counts_have_a_place(self) -> Self:
        if self.rates and not self.broker_url.get_secret_value().startswith(("redis://", "rediss://")):
            raise ValueError(
                "token_requests and address_requests are counted in Redis: use a redis:// broker, or set them to 0"
            )
        return self

    @classmethod
    def from_environment(cls) -> Self:
        nothing: dict[str, Any] = {}
        return cls(**nothing)

    @property
    def rates(self) -> Rates:
        return Rates(self.token_requests, self.address_requests)

    @property
    def quota(self) -> Quota:
        return Quota(self.runs_a_day, self.unfinished_jobs)

    @property
    def mirrors_dir(self) -> Path:
        return self.data_dir / "mirrors"


def _with_secrets_from_files(values: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = dict(values)
    for secret in SECRETS:
        name = f"{secret}_file"
        path = read.pop(name, None) or environ.get(f"{ENVIRONMENT_PREFIX}{name.upper()}")
        if path is None:
            continue
        try:
            read[secret] = Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ValueError(f"{name} {path} cannot be read: {error.strerror}") from error
    return read
