"""A database that is away because the disk it shares with the service is full: API and page name the disk."""

import pytest
from driftline_service.api import disk_space


@pytest.fixture
def full_disk(monkeypatch):
    """As `shortage` sees it: nobody has as much room as it now wants."""
    monkeypatch.setattr(disk_space, "NEEDED_BYTES", 1 << 60)


def told(client):
    page = client.get("/", headers={"Accept": "text/html"})
    answer = client.get("/api/v1/runs")
    assert (page.status_code, answer.status_code, answer.json()["reason"]) == (503, 503, "database_unavailable")
    return page.text, answer.json()["detail"]


def test_only_a_service_that_shares_its_disk_speaks_of_it(client_without_database, settings, full_disk):
    assert disk_space.shortage(settings) == ""
    assert disk_space.shortage(None) == ""
    shared = settings.model_copy(update={"embedded": True})
    assert f"on the disk of {settings.data_dir}: free some" in disk_space.shortage(shared)
    for words in told(client_without_database):
        assert "on the disk of" not in words


def test_a_full_disk_is_named_where_the_database_is_missed(embedded_without_database, settings, full_disk):
    for words in told(embedded_without_database):
        assert f"on the disk of {settings.data_dir}: free some, and it comes back by itself" in words


def test_a_disk_with_room_is_not_blamed(embedded_without_database):
    for words in told(embedded_without_database):
        assert "on the disk of" not in words
