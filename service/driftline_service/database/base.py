"""What every table shares: naming of constraints, column types, words as CHECKs. No table lives here."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from sqlalchemy import CheckConstraint, DateTime, Enum, MetaData, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlalchemy.orm import DeclarativeBase, mapped_column

Json = dict[str, Any]
"""JSON of a contract: dumped from and validated into a class of driftline.contracts, never picked apart here."""

Identity = Annotated[
    UUID, mapped_column(PG_UUID(as_uuid=True), primary_key=True, server_default=text("gen_random_uuid()"))
]
CreatedAt = Annotated[datetime, mapped_column(server_default=func.now())]


class Base(DeclarativeBase):
    """The declarative base. Every constraint has a name, so that a migration can speak of it."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own class attribute
        datetime: DateTime(timezone=True),
        Json: JSONB(none_as_null=True),
    }


def word(kind: type[StrEnum]) -> Enum:
    """A closed set as text: stored by value; `one_of` gives the CHECK that guards it."""
    return Enum(kind, native_enum=False, create_constraint=False, length=32, values_callable=_values)


def one_of(column: str, kind: type[StrEnum]) -> CheckConstraint:
    """The CHECK that a column holds one of the words."""
    return CheckConstraint(f"{column} in ({quoted(kind)})", name=column)


def quoted(words: Iterable[StrEnum]) -> str:
    """The words as an SQL list."""
    return ", ".join(f"'{word.value}'" for word in words)


def _values(kind: type[StrEnum]) -> list[str]:
    return [member.value for member in kind]
