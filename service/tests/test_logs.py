"""Logs as programs read them: a JSON object a line, with the run and job it is about."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest
from driftline_service import logs
from driftline_service.logs import about, logger


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level, stream = root.handlers[:], root.level, io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    logs.configure(format="json", level="INFO")
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


def test_a_line_says_which_run_and_job_it_is_about(written: io.StringIO) -> None:
    run_id, job_id = uuid4(), uuid4()
    with about(run_id=run_id, job_id=job_id):
        logger("driftline.test").info("ours", more=1)
        logging.getLogger("somebody.else").warning("theirs")
        try:
            raise ValueError("a bug")
        except ValueError:
            logger("driftline.test").exception("broken")
    logger("driftline.test").info("of nothing", run="x")
    ours, theirs, broken, other = map(json.loads, written.getvalue().splitlines())
    for line in (ours, theirs, broken):
        assert (line["run_id"], line["job_id"]) == (str(run_id), str(job_id))
        assert {"timestamp", "level", "logger", "event"} <= set(line)
    assert "ValueError: a bug" in broken["exception"]
    assert not {"run_id", "job_id"} & set(other)
