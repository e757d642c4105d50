"""A private repository over real git and HTTP: the token reaches git, and nothing that stays."""

import logging
import os
import stat
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from driftline.contracts.jobs import CommitSource
from driftline.git import GitError, Mirror
from driftline.git.credential import credential_for, lent
from driftline_service.database.tables import GithubSource
from driftline_service.github.sources import Sources


@pytest.fixture
def private(side: Any, tmp_path: Path) -> Any:
    """The repository behind a server that asks for a password; every git notes its arguments and variables down."""
    bare = tmp_path / "served.git"
    subprocess.run(["git", "clone", "-q", "--mirror", str(side.repository), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "repack", "-adq"], check=True)
    subprocess.run(["git", "-C", str(bare), "update-server-info"], check=True)
    side.github.git[side.name] = bare
    side.clone_url, side.private = f"{side.github.url}/{side.name}.git", True
    return side


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What git and the programs that it starts were given, as a file."""
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    notes, folder = tmp_path / "notes", tmp_path / "bin"
    folder.mkdir()
    script = folder / "git"
    script.write_text(f'#!/bin/sh\n{{ echo "$@"; env; }} >> {notes}\nexec {real} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return notes


def test_the_token_reaches_git_and_nothing_that_stays(
    private: Any, noted: Path, github_settings: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    private.send("pull_request", private.pull_request())
    private.work()
    (run,) = private.runs()
    assert run.head_sha == private.commits["refactor"]
    assert private.github.fetches, "git read the repository with the token"
    (token,) = private.github.source_tokens
    said = noted.read_text()
    assert "fetch" in said
    told = capfd.readouterr()
    for place in (said, caplog.text, told.out, told.err, private.shown):
        assert token not in place
    written = [path for path in github_settings.data_dir.rglob("*") if path.is_file()]
    assert any("mirrors" in path.parts for path in written)
    assert not [path for path in written if token.encode() in path.read_bytes()]


def test_without_the_token_it_stays_shut(private: Any, tmp_path: Path) -> None:
    private.send("pull_request", private.pull_request())
    private.work()
    with pytest.raises(GitError, match="cannot be read"):
        Mirror.open(tmp_path / "other", private.clone_url).fetch()
    answer = private.client.post("/api/v1/runs", json={"repo": private.clone_url, "head": "refactor"})
    assert (answer.status_code, answer.json()["reason"]) == (422, "unreachable_repository")


def test_a_token_is_offered_to_its_own_host_alone(private: Any, tmp_path: Path) -> None:
    private.send("pull_request", private.pull_request())
    private.work()
    elsewhere = credential_for("https://other.example.org/x.git", private.github.source_tokens[0])
    with lent(elsewhere), pytest.raises(GitError):
        Mirror.open(tmp_path / "other", private.clone_url).fetch()
    with lent(credential_for(private.clone_url, private.github.source_tokens[0])):
        Mirror.open(tmp_path / "other", private.clone_url).fetch()
    assert private.github.source_tokens[0] not in repr(elsewhere)


def test_a_worker_is_lent_a_token_for_this_repository(private: Any, github_settings: Any, tmp_path: Path) -> None:
    private.send("pull_request", private.pull_request())
    private.work()
    sources = Sources.of(github_settings.model_copy(update={"github_api_url": private.github.url}))
    with private.sessions() as session:
        assert session.get(GithubSource, private.clone_url).private
        token = sources.token_for(session, private.clone_url)
        assert sources.token_for(session, str(private.repository)) is None
        assert Sources(None).token_for(session, private.clone_url) is None
    assert token == private.github.source_tokens[-1]
    source = CommitSource(
        url=private.clone_url, sha=private.commits["refactor"], layout=private.runs()[0].layout,
        kernel_path=private.runs()[0].head_kernel_path,
    )  # fmt: skip
    with lent(credential_for(source.url, token)):
        mirror = Mirror.open(tmp_path / "worker", source.url)
        mirror.fetch_commit(source.sha)
    assert mirror.extract(source.sha, source.kernel_path, tmp_path / "out").is_dir()


def test_when_github_gives_no_token_the_delivery_waits(private: Any) -> None:
    private.github.no_token = (500, "not now")
    private.send("pull_request", private.pull_request())
    private.work()
    assert private.runs() == []
    assert "500" in str(private.outcomes()[0])
    private.github.no_token = None
    private.work()
    assert private.runs() == []  # not yet due
    private.ahead[0] = timedelta(seconds=60)
    private.work()
    assert len(private.runs()) == 1


@pytest.mark.parametrize("refusal", [(404, "Not Found"), (403, "This installation has been suspended"), (422, "gone")])
def test_where_the_app_is_no_more_the_delivery_is_dropped(
    private: Any, github_settings: Any, refusal: tuple[int, str]
) -> None:
    private.github.no_token = refusal
    private.send("pull_request", private.pull_request())
    private.work()
    assert private.outcomes()[0].endswith(f"no token, {refusal[0]}")
    tried = private.tried()
    private.ahead[0] = timedelta(days=2)
    private.work()
    assert private.tried() == tried
    sources = Sources.of(github_settings.model_copy(update={"github_api_url": private.github.url}))
    with private.sessions() as session:
        assert sources.token_for(session, private.clone_url) is None
