"""Server-sent events, as lines become events (WHATWG HTML, 9.2.6). Pure: no connection here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event. `id` is None for events that cannot be resumed from."""

    name: str
    data: str
    id: str | None


def read_events(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """The events of a stream; comments (keep-alive) and an unfinished last event are dropped."""
    name, data, identifier = "message", list[str](), None
    for line in lines:
        if line == "":
            if data:
                yield ServerEvent(name, "\n".join(data), identifier)
            name, data, identifier = "message", [], None
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            identifier = value
