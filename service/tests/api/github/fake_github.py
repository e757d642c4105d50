"""GitHub's REST API as far as Driftline uses it, in this process, over real HTTP. It remembers what it was sent."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse


@dataclass
class FakeGithub:
    """State of one repository. `outage` answers so many requests with that status first."""

    url: str = ""
    writers: set[str] = field(default_factory=set)
    comments: dict[int, str] = field(default_factory=dict)
    checks: dict[int, dict[str, Any]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    outage: list[int] = field(default_factory=list)


def application(state: FakeGithub) -> FastAPI:
    app = FastAPI()

    @app.middleware("http")
    async def remember(request: Request, call_next: Any) -> Any:
        tokens = request.url.path.endswith("/access_tokens")
        if not tokens:
            state.calls.append((request.method, request.url.path))
            if state.outage:
                return JSONResponse(
                    {"message": "not now"}, status_code=state.outage.pop(0), headers={"Retry-After": "90"}
                )
            if request.headers.get("authorization") not in ("token ghs_installation", "Bearer ghs_installation"):
                return JSONResponse({"message": "Bad credentials"}, status_code=401)
        return await call_next(request)

    @app.post("/app/installations/{installation}/access_tokens", status_code=201)
    def token(installation: int, request: Request) -> dict[str, Any]:
        assert request.headers["authorization"].startswith("Bearer ey"), "the App signs with its key"
        return {
            "token": "ghs_installation", "expires_at": "2099-01-01T00:00:00Z", "permissions": {},
            "repository_selection": "all",
        }  # fmt: skip

    @app.get("/repos/{owner}/{name}/collaborators/{user}/permission")
    def permission(owner: str, name: str, user: str) -> dict[str, Any]:
        role = "write" if user in state.writers else "read"
        return {"permission": role, "role_name": role, "user": None}

    @app.post("/repos/{owner}/{name}/issues/{number}/comments", status_code=201)
    async def comment(owner: str, name: str, number: int, request: Request) -> dict[str, Any]:
        made = 1000 + len(state.comments)
        state.comments[made] = (await request.json())["body"]
        return {"id": made}

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
        return {"id": check_id}

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
