"""Which Host and Origin are served."""

from pathlib import Path
from typing import Any

import pytest
from driftline_service.auth.hosts import HostRule
from driftline_service.settings import Settings

FIELDS: dict[str, Any] = {"database_url": "x", "broker_url": "y", "data_dir": Path("z"), "allowed_hosts": ("inner",)}
RULE = HostRule.of(Settings(public_url="https://drift.example.org:8443", **FIELDS))


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8642", "localhost", "[::1]:80", "drift.example.org:8443", "DRIFT.example.org", "inner:1"]
)
def test_known_names_are_served(host: str) -> None:
    assert RULE.refusal(method="POST", host=host, origin=None) is None


@pytest.mark.parametrize("host", [None, "", "evil.example", "evil.example:8642", "127.0.0.1.evil.example", "[::2]:80"])
def test_other_names_are_not(host: str | None) -> None:
    refusal = RULE.refusal(method="GET", host=host, origin=None)
    assert refusal is not None
    assert refusal[:2] == (421, "unknown_host")


def test_a_page_elsewhere_may_read_but_not_write() -> None:
    foreign = "https://evil.example"
    assert RULE.refusal(method="GET", host="localhost", origin=foreign) is None
    refusal = RULE.refusal(method="POST", host="localhost", origin=foreign)
    assert refusal is not None
    assert refusal[:2] == (403, "foreign_origin")
    assert RULE.refusal(method="POST", host="localhost", origin="null") is not None
    assert RULE.refusal(method="POST", host="localhost", origin="http://localhost:8642") is None
