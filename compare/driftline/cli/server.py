"""The client of one Driftline server: finds it, speaks HTTP, turns problems into CommandError."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from driftline.cli.failure import CommandError, ServerAwayError

if TYPE_CHECKING:
    import ssl

TIMEOUT_SECONDS = 60.0
"""Submitting fetches the repository, which may take a while."""

Parameters = Mapping[str, str | int | bool]

AWAY = frozenset({502, 503, 504, 507})
"""Statuses of a server whose database, disk or proxy is in trouble that passes."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is and what it lets us do."""

    url: str
    token: str | None

    def get(self, path: str, **parameters: str | int | bool) -> Any:
        """JSON of a GET."""
        return self._json("GET", path, parameters=parameters)

    def get_text(self, path: str, **parameters: str | int | bool) -> str:
        return self._send("GET", path, parameters=parameters)

    def post(self, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None) -> Any:
        """JSON of a POST, with the admin token."""
        return self._json("POST", path, body=body, headers=headers)

    def delete(self, path: str) -> Any:
        """JSON of a DELETE."""
        return self._json("DELETE", path)

    def pages(self, path: str, key: str) -> Iterator[Any]:
        """Every item of a list that comes a page at a time."""
        page = self.get(path, limit=200)
        while True:
            yield from page[key]
            if page["next"] is None:
                return
            page = self.get(page["next"])

    def upload(self, path: str, content: IO[bytes], media_type: str, **parameters: str) -> Any:
        """JSON of a POST whose body is read from a file, a piece at a time."""
        return self._json("POST", path, parameters=parameters, content=content, headers={"Content-Type": media_type})

    @contextmanager
    def stream(self, path: str, *, last_event_id: str | None) -> Iterator[Iterator[str]]:
        """The lines of an event stream."""
        import httpx

        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_event_id} if last_event_id else {})
        with httpx.stream(
            "GET", f"{self.url}{path}", headers=headers, timeout=TIMEOUT_SECONDS, verify=_trusted()
        ) as answer:
            if answer.is_error:
                answer.read()
                kind = ServerAwayError if answer.status_code in AWAY else CommandError
                raise kind(_problem(answer.text, answer.status_code))
            yield answer.iter_lines()

    def _json(self, method: str, path: str, **more: Any) -> Any:
        text = self._send(method, path, **more)
        try:
            return json.loads(text)
        except ValueError as error:
            raise CommandError(f"{self.url} is no Driftline server: it sent no JSON; check --server") from error

    def _send(
        self, method: str, path: str, *, parameters: Parameters | None = None, body: Mapping[str, Any] | None = None,
        content: IO[bytes] | None = None, headers: Mapping[str, str] | None = None,
    ) -> str:  # fmt: skip
        import httpx

        sent = dict(headers or {}) | ({"Authorization": f"Bearer {self.token}"} if self.token else {})
        try:
            answer = httpx.request(
                method,
                f"{self.url}{path}",
                params=parameters,
                json=body,
                content=content,
                headers=sent,
                timeout=TIMEOUT_SECONDS,
                verify=_trusted(),
            )
        except httpx.TransportError as error:
            raise CommandError(
                f"no answer from {self.url} ({error}); is it running? `driftline serve` starts one"
            ) from error
        if answer.is_error:
            raise CommandError(_problem(answer.text, answer.status_code))
        return answer.text


@cache
def _trusted() -> "ssl.SSLContext":
    """The certificates to trust, read once: by default httpx reads them for each request, which costs more than the request."""
    import httpx

    return httpx.create_ssl_context()


def find(data_dir: Path, url: str | None, token: str | None) -> Server:
    """The server named by --server, else the one that serves the data folder.

    Raises:
        CommandError: if there is none.
    """
    if url is not None:
        return Server(url.rstrip("/"), token)
    place = data_dir / "server.json"
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        return Server(str(found["url"]), token or Path(found["token_file"]).read_text(encoding="ascii").strip())
    except FileNotFoundError as error:
        raise CommandError(
            f"no server runs on data folder {data_dir} ({error.filename} is missing); start one with "
            f"`driftline serve --data-dir {data_dir}`, or name one with --server"
        ) from error
    except PermissionError as error:
        raise CommandError(
            f"{error.filename} belongs to another user; ask for the token and use --server and --token"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{place} is damaged; stop the server, remove the file and start it again") from error


def _problem(text: str, status: int) -> str:
    try:
        problem = json.loads(text)
        return f"{problem['detail']} ({problem['reason']})"
    except (ValueError, KeyError, TypeError):
        said = " ".join(text[:200].split()) or "nothing"
        return f"the server answered {status}: {said}; is it a Driftline server?"
