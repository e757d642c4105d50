"""Requests over a token's or an address's share are refused with the time to wait, and cost nothing else."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from uuid import uuid4

import httpx
import pytest
import redis
from driftline_service.api.rate_limit import bucket_of
from driftline_service.settings import Settings
from pydantic import SecretStr, ValidationError

Serve = Callable[[Settings], AbstractContextManager[httpx.Client]]

REDIS = os.environ.get("DRIFTLINE_TEST_REDIS_URL", "redis://127.0.0.1:6379/0")


def limited(settings: Settings, *, token: int = 0, address: int = 0, broker: str = REDIS) -> Settings:
    changes = {"token_requests": token, "address_requests": address, "broker_url": SecretStr(broker)}
    return settings.model_copy(update=changes)


@pytest.fixture(autouse=True)
def _emptied() -> Iterator[None]:
    """Buckets of this machine's address are shared with whoever else tests here."""
    counts = redis.Redis.from_url(REDIS)
    for key in counts.scan_iter("driftline:rate:address:127.0.0.1"):
        counts.delete(key)
    yield
    counts.close()


def asked(client: httpx.Client, times: int, **headers: str) -> list[int]:
    return [client.get("/api/v1/lanes", headers=headers).status_code for _ in range(times)]


def test_a_token_gets_its_share_and_no_more(settings: Settings, serve: Serve) -> None:
    with serve(limited(settings, token=5)) as client:
        mine, other = f"Bearer {uuid4()}", f"Bearer {uuid4()}"
        assert asked(client, 7, Authorization=mine) == [200] * 5 + [429] * 2
        assert asked(client, 2, Authorization=other) == [200, 200]
        refused = client.post("/api/v1/runs", json={}, headers={"Authorization": mine})
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["retry-after"]) <= 12
    assert refused.json()["reason"] == "too_many_requests"
    assert "this token made more than 5 requests a minute" in refused.json()["detail"]


def test_an_address_gets_its_share_whatever_tokens_it_makes_up(settings: Settings, serve: Serve) -> None:
    with serve(limited(settings, address=4)) as client:
        statuses = [asked(client, 1, Authorization=f"Bearer {uuid4()}")[0] for _ in range(6)]
        assert statuses == [200] * 4 + [429] * 2
        assert client.get("/healthz").status_code == 200
        assert client.get("/metrics").status_code == 200
        assert client.post("/worker/v1/jobs/x/claim").status_code == 422


def test_two_replicas_share_the_counts(settings: Settings, serve: Serve) -> None:
    with serve(limited(settings, token=4)) as one, serve(limited(settings, token=4)) as two:
        token = f"Bearer {uuid4()}"
        assert asked(one, 3, Authorization=token) + asked(two, 2, Authorization=token) == [200] * 4 + [429]


def test_no_token_is_kept_in_redis(settings: Settings, serve: Serve) -> None:
    token = uuid4().hex
    with serve(limited(settings, token=9)) as client:
        asked(client, 1, Authorization=f"Bearer {token}")
    counts = redis.Redis.from_url(REDIS)
    assert not [key for key in counts.scan_iter("driftline:rate:token:*") if token.encode() in key]
    counts.close()


def test_a_redis_that_is_away_limits_nobody(settings: Settings, serve: Serve) -> None:
    with serve(limited(settings, token=1, broker="redis://127.0.0.1:9/0")) as client:
        assert asked(client, 3, Authorization=f"Bearer {uuid4()}") == [200] * 3


def test_limits_without_redis_are_refused_at_the_start(settings: Settings) -> None:
    fields = settings.model_dump(exclude={"admin_token_sha256"}) | {"token_requests": 5}
    with pytest.raises(ValidationError, match="counted in Redis"):
        Settings(**fields)


@pytest.mark.parametrize(("address", "bucket"), [
    ("10.0.0.7", "10.0.0.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("::ffff:10.0.0.7", "10.0.0.7"),
    ("testclient", "testclient"),
])  # fmt: skip
def test_bucket_of_an_address(address: str, bucket: str) -> None:
    assert bucket_of(address) == bucket
