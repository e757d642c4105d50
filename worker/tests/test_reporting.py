"""What goes to the service when: lines gather, a new phase does not wait for them."""

import threading

import pytest
from driftline.contracts.channel import Progress
from driftline.contracts.worker_api import Directive, LineBatch
from driftline_worker import reporting
from driftline_worker.reporting import Reporter
from driftline_worker.stop_request import StopRequest


class Service:
    """Keeps the batches it is sent; `wait` returns when there are so many, or fails."""

    def __init__(self) -> None:
        self.batches: list[LineBatch] = []
        self._arrived = threading.Condition()

    def __call__(self, batch: LineBatch) -> Directive:
        with self._arrived:
            self.batches.append(batch)
            self._arrived.notify()
        return Directive(action="continue")

    def wait(self, count: int) -> None:
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.batches) >= count, timeout=20)

    def told(self) -> list[list[tuple[str, int]]]:
        return [
            [(line.phase, line.done) for line in batch.lines if isinstance(line, Progress)] for batch in self.batches
        ]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(reporting, "BATCH_SECONDS", 3600.0)
    return Service()


def line(phase: str, done: int) -> Progress:
    return Progress(phase=phase, done=done, total=9)


def test_a_new_phase_is_told_at_once_and_what_goes_on_in_it_waits(service):
    reporter = Reporter(service, StopRequest())
    reporter.put(line("load", 0), 50)
    service.wait(1)
    for done in (1, 2, 3):
        reporter.put(line("load", done), 50)
    assert service.told() == [[("load", 0)]]
    reporter.put(line("generate", 0), 50)
    service.wait(2)
    reporter.put(line("generate", 4), 50)
    reporter.close()
    assert service.told() == [[("load", 0)], [("load", 3), ("generate", 0)], [("generate", 4)]]
    assert reporter.batches == 3


def test_a_full_batch_is_sent_and_the_rest_follows_at_the_end(service):
    reporter = Reporter(service, StopRequest())
    phases = [f"phase-{number % 2}" for number in range(2 * reporting.BATCH_LINES + 10)]
    for place, phase in enumerate(phases):
        reporter.put(line(phase, place % 9), 50)
    reporter.close()
    sent = [entry for batch in service.told() for entry in batch]
    assert sent == [(phase, place % 9) for place, phase in enumerate(phases)]
    assert all(len(batch) <= reporting.BATCH_LINES for batch in service.told())
    assert [batch.sequence for batch in service.batches] == list(range(len(service.batches)))
