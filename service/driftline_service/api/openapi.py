"""The OpenAPI document, with the errors that every route of a kind may answer, so that none is forgotten in a route."""

from typing import Any

from fastapi import FastAPI

from driftline_service.api.problems import responses

METHODS = ("get", "post", "put", "patch", "delete")


def document_errors(app: FastAPI) -> None:
    """Let `app` describe its own errors: 503 wherever the database is asked, 422 as a problem and not as FastAPI's own
    body, 400 and 413 where a body is read, 401 and 403 where a private service asks who reads."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        document = plain()
        for path, operations in document["paths"].items():
            for method in METHODS:
                if method in operations:
                    _describe(path, operations[method])
        document["components"]["schemas"].pop("HTTPValidationError", None)
        document["components"]["schemas"].pop("ValidationError", None)
        return document

    app.openapi = described  # type: ignore[method-assign] # FastAPI's documented way to extend the document


def _describe(path: str, operation: dict[str, Any]) -> None:
    if not path.startswith("/api/"):
        return
    statuses = [401, 403, 422, 503]
    if "requestBody" in operation:
        statuses += [400, 413]
    for status, description in responses(*statuses).items():
        operation["responses"][str(status)] = description
