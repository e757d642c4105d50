"""The base of every contract: frozen, unknown fields refused, text that PostgreSQL can hold."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class Contract(BaseModel):
    """A value that crosses a boundary. Unknown fields are refused so that two versions never half-understand each other."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""A full git commit id."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""A sha256 in hexadecimal."""

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,99}$")]
"""A name people type: lanes, models, tasks, workers."""

Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A fraction, never a percentage."""

MESSAGE_CHARACTERS = 4000
"""Longest message kept from a child: enough for a compiler's error, too little to fill a disk."""

Message = Annotated[str, StringConstraints(max_length=MESSAGE_CHARACTERS)]
