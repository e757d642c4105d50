"""What a person means by an id, the beginning of one, or `latest`: one rule for everything that the server lists."""

from dataclasses import dataclass
from typing import Final

from driftline.cli.failure import CommandError
from driftline.cli.server import Server

SHORTEST_PREFIX: Final = 4
"""Characters; fewer are a slip rather than a name."""

WHOLE_ID: Final = 36
"""Characters of a UUID."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of the server, newest first, whose items may be named."""

    noun: str
    path: str
    key: str
    """under which the list stands in the answer"""
    id: str
    """the item's field that holds its id"""
    command: str
    """which lists them for a person"""


RUNS: Final = Listed("run", "/api/v1/runs", "runs", "run_id", "driftline runs")
IMPORTS: Final = Listed("import", "/api/v1/imports", "imports", "import_id", "driftline imports")


def chosen(server: Server, listed: Listed, given: str) -> str:
    """The full id of an item named by id, by an unambiguous beginning, or as `latest`.

    Raises:
        CommandError: if no item, or more than one, is meant.
    """
    if len(given) == WHOLE_ID:
        return given
    if given == "latest":
        fitting = [str(one[listed.id]) for one in server.get(listed.path, limit=1)[listed.key]]
    else:
        ids = [str(one[listed.id]) for one in server.pages(listed.path, listed.key)]
        fitting = [one for one in ids if len(given) >= SHORTEST_PREFIX and one.startswith(given.lower())]
    if len(fitting) != 1:
        what = f"no {listed.noun}" if not fitting else f"{len(fitting)} {listed.noun}s"
        raise CommandError(f"{what} called {given!r}; `{listed.command}` lists them")
    return fitting[0]
