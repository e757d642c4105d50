"""Lines of an event stream become events."""

from driftline.cli.event_stream import ServerEvent, read_events


def test_events_comments_and_resumption() -> None:
    lines = [
        ": keep-alive",
        "",
        "id: 7",
        "event: entry",
        'data: {"a": 1}',
        "",
        "event:progress",
        "data: x",
        "data:  y",
        "",
        "data: cut",
    ]
    assert list(read_events(lines)) == [ServerEvent("entry", '{"a": 1}', "7"), ServerEvent("progress", "x\n y", None)]


def test_an_event_without_data_is_none() -> None:
    assert list(read_events(["event: entry", "", "data: z", ""])) == [ServerEvent("message", "z", None)]
