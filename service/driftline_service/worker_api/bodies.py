"""The door: bytes of a worker become a contract, or a named refusal. All text is storable from here on."""

import json
from typing import TypeVar

from driftline.contracts.base import Contract
from fastapi import Request
from pydantic import ValidationError

from driftline_service.api.problems import Problem
from driftline_service.database.storable import may_be_unstorable, storable_json

MAX_BATCH_BYTES = 64 << 20
"""2,000 lines of about 20 kB each are 40 MB: a larger body is no batch."""

_Body = TypeVar("_Body", bound=Contract)


async def raw_body(request: Request) -> bytes:
    """The body, refused at the first byte too many whatever length it declares."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BATCH_BYTES:
            raise Problem(413, "body_too_large", f"a batch may have {MAX_BATCH_BYTES} bytes; send fewer lines at once")
        chunks.append(chunk)
    return b"".join(chunks)


def parse(kind: type[_Body], body: bytes) -> _Body:
    """The contract in the body, its text made storable first: half a surrogate pair is valid JSON and no valid text.

    A body that says nothing unstorable, which is nearly every one, is parsed once, by pydantic itself.

    Raises:
        Problem: 422, naming the first field that does not fit.
    """
    try:
        if not may_be_unstorable(body):
            return kind.model_validate_json(body)
        return kind.model_validate(storable_json(json.loads(body)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Problem(422, "malformed", f"{kind.__name__}: {where}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise Problem(422, "malformed", f"the body is no JSON: {type(error).__name__}: {error}") from None
