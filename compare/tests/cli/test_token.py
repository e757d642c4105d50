"""`driftline token` against a real server."""

import subprocess
from collections.abc import Callable
from pathlib import Path

Driftline = Callable[..., "subprocess.CompletedProcess[str]"]


def test_a_token_is_made_used_listed_and_revoked(driftline: Driftline, served: Path, repository: Path) -> None:
    made = driftline("token", "create", "ci of kernels", "--days", "7", folder=served)
    token = made.stdout.strip()
    assert made.returncode == 0
    assert token.startswith("driftline_")
    assert "ci of kernels may submit until 20" in made.stderr
    submitted = driftline("submit", "--repo", str(repository), "--head", "change", "--token", token, folder=served)
    assert submitted.returncode == 0, submitted.stderr
    listed = driftline("token", "list", folder=served).stdout
    assert "ci of kernels" in listed
    assert token not in listed
    again = driftline("token", "create", "ci of kernels", folder=served)
    assert again.returncode == 1
    assert "(name_taken)" in again.stderr
    assert driftline("token", "revoke", "ci of kernels", folder=served).stdout == "ci of kernels: revoked\n"
    refused = driftline("submit", "--repo", str(repository), "--head", "change", "--token", token, folder=served)
    assert refused.returncode == 1
    assert "unknown, expired or revoked" in refused.stderr
    assert "ci of kernels" not in driftline("token", "list", folder=served).stdout
    assert "revoked" in driftline("token", "list", "--all", folder=served).stdout


def test_a_name_that_is_not_there_is_told(driftline: Driftline, served: Path) -> None:
    answer = driftline("token", "revoke", "nobody", folder=served)
    assert answer.returncode == 1
    assert "there is no token named 'nobody' to revoke" in answer.stderr
