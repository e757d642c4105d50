"""GitHub's REST API as far as Driftline uses it, in this process, over real HTTP. It remembers what it was sent."""

import asyncio
import json
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

APP_ID = 12
LATE_SECONDS = 1.0
"""Longer than a test's client waits."""


@dataclass
class FakeGithub:
    """State of one repository. `outage` is what becomes of the next requests: a status to answer with and do nothing, or
    `lost` and `late`: done, and then answered 502 or only after LATE_SECONDS."""

    url: str = ""
    writers: set[str] = field(default_factory=set)
    comments: dict[int, str] = field(default_factory=dict)
    checks: dict[int, dict[str, Any]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    outage: list[int | str] = field(default_factory=list)
    annotated: list[list[dict[str, Any]]] = field(default_factory=list)
    """of each call that brought any"""
    git: dict[str, Path] = field(default_factory=dict)
    """private repository -> its bare folder, served as git's plain files to whoever holds a source token"""
    source_tokens: list[str] = field(default_factory=list)
    asked_for_tokens: list[int] = field(default_factory=list)
    """by which installation, each time"""
    no_token: tuple[int, str] | None = None
    """what a request for any token is answered instead: status and message"""
    not_installed: set[str] = field(default_factory=set)
    """repositories that the App was taken from"""
    suspended: bool = False
    fetches: list[str] = field(default_factory=list)
    """paths that were served to a token"""


async def trouble(kind: int | str, request: Request, call_next: Any) -> Any:
    if isinstance(kind, str):
        await call_next(request)
        await asyncio.sleep(LATE_SECONDS if kind == "late" else 0)
        kind = 502
    headers = {"Retry-After": "90"} | ({"X-RateLimit-Remaining": "0"} if kind in (403, 429) else {})
    return JSONResponse({"message": "not now"}, status_code=kind, headers=headers)


def application(state: FakeGithub) -> FastAPI:
    app = FastAPI()

    @app.middleware("http")
    async def remember(request: Request, call_next: Any) -> Any:
        if not request.url.path.endswith("/access_tokens") and ".git/" not in request.url.path:
            state.calls.append((request.method, request.url.path))
            if state.outage:
                return await trouble(state.outage.pop(0), request, call_next)
            if request.url.path.endswith("/installation"):
                assert request.headers["authorization"].startswith("Bearer ey"), "the App signs with its key"
            elif request.headers.get("authorization") not in ("token ghs_installation", "Bearer ghs_installation"):
                return JSONResponse({"message": "Bad credentials"}, status_code=401)
        return await call_next(request)

    @app.post("/app/installations/{installation}/access_tokens", status_code=201)
    async def token(installation: int, request: Request) -> Any:
        assert request.headers["authorization"].startswith("Bearer ey"), "the App signs with its key"
        made = "ghs_installation"
        body = await request.body()
        state.asked_for_tokens.append(installation)
        if state.no_token is not None:
            return JSONResponse({"message": state.no_token[1]}, status_code=state.no_token[0])
        if b"permissions" in body:
            assert json.loads(body)["permissions"] == {"contents": "read"}, "no more than fetching needs"
            made = f"ghs_{token_hex(18)}"
            state.source_tokens.append(made)
        return {
            "token": made, "expires_at": "2099-01-01T00:00:00Z", "permissions": {},
            "repository_selection": "all",
        }  # fmt: skip

    @app.get("/repos/{owner}/{name}/installation")
    def installation_of(owner: str, name: str) -> Any:
        if f"{owner}/{name}" in state.not_installed:
            return JSONResponse({"message": "Not Found"}, status_code=404)
        return {"id": 1, "app_id": APP_ID, "suspended_at": "2026-01-01T00:00:00Z" if state.suspended else None}

    @app.get("/repos/{owner}/{name}/collaborators/{user}/permission")
    def permission(owner: str, name: str, user: str) -> dict[str, Any]:
        role = "write" if user in state.writers else "read"
        return {"permission": role, "role_name": role, "user": None}

    @app.post("/repos/{owner}/{name}/issues/{number}/comments", status_code=201)
    async def comment(owner: str, name: str, number: int, request: Request) -> dict[str, Any]:
        made = 1000 + len(state.comments)
        state.comments[made] = (await request.json())["body"]
        return {"id": made}

    @app.get("/repos/{owner}/{name}/issues/{number}/comments")
    def comments(owner: str, name: str, number: int, per_page: int, page: int) -> list[dict[str, Any]]:
        """A person's, who quotes the App's, and the App's."""
        said = [{"id": 1, "body": "> <!-- driftline -->", "performed_via_github_app": None}]
        said += [
            {"id": key, "body": body, "performed_via_github_app": {"id": APP_ID}}
            for key, body in state.comments.items()
        ]
        return said[per_page * (page - 1) : per_page * page]

    @app.get("/repos/{owner}/{name}/commits/{sha}/check-runs")
    def check_runs(owner: str, name: str, sha: str, check_name: str, app_id: int) -> dict[str, Any]:
        found = [
            {"id": key, "external_id": one["external_id"]}
            for key, one in state.checks.items()
            if (one["head_sha"], one["name"], app_id) == (sha, check_name, APP_ID)
        ]
        return {"check_runs": found, "total_count": len(found)}

    @app.patch("/repos/{owner}/{name}/issues/comments/{comment_id}")
    async def edit(owner: str, name: str, comment_id: int, request: Request) -> Any:
        if comment_id not in state.comments:
            return JSONResponse({"message": "Not Found"}, status_code=404)
        state.comments[comment_id] = (await request.json())["body"]
        return {"id": comment_id}

    @app.post("/repos/{owner}/{name}/check-runs", status_code=201)
    async def check(owner: str, name: str, request: Request) -> dict[str, Any]:
        made = 5000 + len(state.checks)
        state.checks[made] = await request.json()
        return {"id": made}

    @app.patch("/repos/{owner}/{name}/check-runs/{check_id}")
    async def change(owner: str, name: str, check_id: int, request: Request) -> dict[str, Any]:
        state.checks[check_id] = await request.json()
        if told := state.checks[check_id]["output"].get("annotations"):
            state.annotated.append(told)
        return {"id": check_id}

    @app.get("/{owner}/{name}.git/{path:path}")
    def plain_git(owner: str, name: str, path: str, request: Request) -> Response:
        """git's own "dumb" protocol: the files of a bare repository after `git update-server-info`."""
        allowed = [b64encode(f"x-access-token:{each}".encode()).decode() for each in state.source_tokens]
        if request.headers.get("authorization", "").removeprefix("Basic ") not in allowed:
            return Response(status_code=401, headers={"WWW-Authenticate": 'Basic realm="GitHub"'})
        state.fetches.append(path)
        file = state.git[f"{owner}/{name}"] / path
        return Response(file.read_bytes()) if file.is_file() else Response(status_code=404)

    return app


@contextmanager
def serving(state: FakeGithub) -> Iterator[FakeGithub]:
    server = uvicorn.Server(uvicorn.Config(application(state), port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the fake GitHub did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    state.url = f"http://127.0.0.1:{port}"
    try:
        yield state
    finally:
        server.should_exit = True
        thread.join(10)
