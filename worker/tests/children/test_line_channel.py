"""The writing end of a child's pipe against the classes that the worker validates with."""

import json
import os
import threading
from collections.abc import Callable

import pytest
from driftline.contracts.channel import LINE
from driftline.contracts.channel import MAX_LINE_BYTES as CONTRACT_MAX_LINE_BYTES
from driftline_worker.children.line_channel import MAX_LINE_BYTES, MESSAGE_CHARACTERS, Channel, LineError, clipped


def written(write: Callable[[Channel], None]) -> list[bytes]:
    """The lines that reach the other end of a real pipe."""
    reading, writing = os.pipe()
    received: list[bytes] = []

    def read() -> None:
        with os.fdopen(reading, "rb") as pipe:
            received.extend(pipe.readlines())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        write(Channel(writing))
    finally:
        os.close(writing)
        reader.join()
    return received


def case_line(channel: Channel, **changes: object) -> None:
    fields: dict[str, object] = {
        "name": "packing/two", "kind": "contract", "backend": "torch", "passed": True,
        "max_abs_err": 1e-6, "max_rel_err": 1e-6, "tolerance": 1e-5, "config": "", "message": "",
    }  # fmt: skip
    channel.send("case", **(fields | changes))


def test_limits_are_those_of_the_contract() -> None:
    assert MAX_LINE_BYTES == CONTRACT_MAX_LINE_BYTES


def test_a_whole_report_validates_and_counts_its_result_lines() -> None:
    def write(channel: Channel) -> None:
        channel.hello()
        channel.send("progress", phase="check", done=0, total=2)
        case_line(channel)
        case_line(channel)
        channel.finish()

    lines = [LINE.validate_json(line) for line in written(write)]
    assert [line.type for line in lines] == ["hello", "progress", "case", "case", "result"]
    assert lines[-1].model_dump() == {"type": "result", "lines": 2}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_becomes_null(value: float) -> None:
    [line] = written(lambda channel: case_line(channel, max_abs_err=value))
    assert json.loads(line)["max_abs_err"] is None
    LINE.validate_json(line)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc80", "\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("na\u00efve\0", "na\u00efve\ufffd"),
        ("a\nb", "a\nb"),
    ],
)
def test_text_arrives_as_text_that_every_reader_can_hold(text: str, safe: str) -> None:
    [line] = written(lambda channel: case_line(channel, message=text))
    assert LINE.validate_json(line).model_dump()["message"] == safe


def test_a_failure_ends_the_channel_and_its_message_is_cut_at_both_ends_kept() -> None:
    def write(channel: Channel) -> None:
        channel.fail("permanent", "kernels_do_not_import", "head" + "x" * 10_000 + "tail")
        with pytest.raises(LineError, match="last line"):
            channel.finish()

    [line] = written(write)
    message = LINE.validate_json(line).model_dump()["message"]
    assert len(message) == MESSAGE_CHARACTERS
    assert message.startswith("headx")
    assert message.endswith("xtail")


def test_a_message_that_fits_is_left_alone() -> None:
    assert clipped("x" * MESSAGE_CHARACTERS) == "x" * MESSAGE_CHARACTERS


def test_a_line_over_the_limit_is_refused_by_name_and_nothing_of_it_is_written() -> None:
    def write(channel: Channel) -> None:
        with pytest.raises(LineError, match="case line of"):
            case_line(channel, message="x" * MAX_LINE_BYTES)
        channel.finish()

    assert [json.loads(line)["type"] for line in written(write)] == ["result"]


def test_what_json_cannot_hold_is_a_type_error() -> None:
    def write(channel: Channel) -> None:
        with pytest.raises(TypeError, match="bytes"):
            channel.send("case", message=b"x")

    assert written(write) == []


def test_long_lines_of_many_threads_are_never_torn() -> None:
    def write(channel: Channel) -> None:
        def send(letter: str) -> None:
            for _ in range(5):
                case_line(channel, message=letter * 150_000)

        threads = [threading.Thread(target=send, args=(letter,)) for letter in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        channel.finish()

    lines = [json.loads(line) for line in written(write)]
    assert lines[-1] == {"type": "result", "lines": 20}
    assert all(set(line["message"]) == {line["message"][0]} and len(line["message"]) == 150_000 for line in lines[:-1])
