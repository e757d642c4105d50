"""The API in words: one section an operation, from the OpenAPI document. Nothing is loaded from elsewhere."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from driftline_service.api.context import ContextDep
from driftline_service.pages import renderer
from driftline_service.pages.page_route import PageRoute

router = APIRouter(include_in_schema=False, route_class=PageRoute)

TECHNICAL = frozenset({"authorization", "driftline_token"})
"""How a token is sent is told once, above all operations."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    place: str
    required: bool
    description: str


@dataclass(frozen=True, slots=True)
class Operation:
    """`example` is a body as it may be sent, empty where none is read; `answers` are (status, description)."""

    method: str
    path: str
    description: str
    parameters: tuple[Parameter, ...]
    example: str
    answers: tuple[tuple[str, str], ...]

    @property
    def anchor(self) -> str:
        return "-".join([self.method.lower(), *(part.strip("{}") for part in self.path.split("/") if part)])


@router.get("/docs")
def show_api(request: Request, found: ContextDep) -> Response:
    """Every public operation."""
    document = request.app.openapi()
    values = {"title": document["info"]["title"], "about": document["info"]["description"].split("\n\n"),
              "operations": operations(document)}  # fmt: skip
    return renderer.page(found.settings.dashboards_dir, "docs.html", values)


def operations(document: Json) -> list[Operation]:
    """The document's operations in its own order."""
    schemas: Json = document["components"]["schemas"]
    return [
        _operation(method, path, given, schemas)
        for path, methods in document["paths"].items()
        for method, given in methods.items()
    ]


def _operation(method: str, path: str, given: Json, schemas: Json) -> Operation:
    parameters = tuple(
        Parameter(one["name"], one["in"], one["required"], one.get("description", ""))
        for one in given.get("parameters", ())
        if one["name"] not in TECHNICAL
    )
    answers = tuple((status, answer["description"]) for status, answer in sorted(given["responses"].items()))
    description = given.get("description") or given["summary"]
    return Operation(method.upper(), path, description, parameters, _example(given, schemas), answers)


def _example(given: Json, schemas: Json) -> str:
    """The first example of the body's schema, as JSON; empty if there is none."""
    content: Json = given.get("requestBody", {}).get("content", {})
    found: Json = content.get("application/json", {}).get("schema", {})
    schema: Json = schemas.get(found.get("$ref", "").rpartition("/")[2], found)
    examples = schema.get("examples") or _from_fields(schema)
    return json.dumps(examples[0], indent=2, ensure_ascii=False) if examples else ""


def _from_fields(schema: Json) -> list[dict[str, Any]]:
    """An example put together from those of the fields."""
    fields: Json = schema.get("properties", {})
    example = {name: field["examples"][0] for name, field in fields.items() if field.get("examples")}
    return [example] if example else []
