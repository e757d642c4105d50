"""The admin token's file and its comparison."""

from hashlib import sha256
from pathlib import Path
from typing import Any

from driftline_service.auth.token import AdminToken, ensure_token_file
from driftline_service.settings import Settings


def _settings(**more: str) -> Settings:
    fields: dict[str, Any] = {"database_url": "x", "broker_url": "y", "data_dir": Path("z")} | more
    return Settings(**fields)


def test_the_file_is_private_random_and_kept(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    ensure_token_file(first)
    ensure_token_file(second)
    token = first.read_text()
    assert first.stat().st_mode & 0o777 == 0o600
    assert len(token) >= 43
    assert token != second.read_text()
    ensure_token_file(first)
    assert first.read_text() == token


def test_an_open_or_empty_file_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("")
    path.chmod(0o644)
    ensure_token_file(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_text()) >= 43


def test_a_token_or_its_hash_let_the_same_bearer_in() -> None:
    by_token = AdminToken.of(_settings(admin_token="sesame"))
    by_hash = AdminToken.of(_settings(admin_token_sha256=sha256(b"sesame").hexdigest()))
    for kept in (by_token, by_hash):
        assert kept.matches("sesame")
        assert not kept.matches("Sesame")
        assert not kept.matches("")


def test_without_a_token_nobody_is_let_in() -> None:
    assert not AdminToken.of(_settings()).matches("")
