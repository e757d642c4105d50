"""Settings come from DRIFTLINE_… or from files; secrets never show."""

from pathlib import Path

import pytest
from driftline_service.settings import Settings
from pydantic import ValidationError


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "DATABASE_URL": "postgresql://a:hidden@b/c",
        "BROKER_URL": "redis://r",
        "DATA_DIR": "/d",
    }.items():
        monkeypatch.setenv(f"DRIFTLINE_{name}", value)


def test_a_secret_is_read_from_a_file_and_stripped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "token"
    secret.write_text("abc\n")
    monkeypatch.setenv("DRIFTLINE_ADMIN_TOKEN_FILE", str(secret))
    token = Settings.from_environment().admin_token
    assert token is not None
    assert token.get_secret_value() == "abc"


def test_a_secret_file_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_DATABASE_URL_FILE", "/nowhere/url")
    with pytest.raises(ValidationError, match="database_url_file /nowhere/url cannot be read"):
        Settings.from_environment()


def test_secrets_do_not_show() -> None:
    assert "hidden" not in repr(Settings.from_environment())


def test_token_and_hash_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_ADMIN_TOKEN", "abc")
    monkeypatch.setenv("DRIFTLINE_ADMIN_TOKEN_SHA256", "0" * 64)
    with pytest.raises(ValidationError, match="not both"):
        Settings.from_environment()


def test_half_a_github_app_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_GITHUB_APP_ID", "12")
    with pytest.raises(ValidationError, match="needs both github_app_id and github_private_key"):
        Settings.from_environment()
