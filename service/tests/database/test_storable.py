"""Text that PostgreSQL cannot hold is kept readable and can be had back."""

import json

import pytest
from driftline_service.database.engine import Sessions
from driftline_service.database.storable import may_be_unstorable, original, storable, storable_json
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.text("\x00\ud800\udfff␛␀\ue000a1")


@given(ANY_TEXT)
def test_original_undoes_storable(value: str) -> None:
    escaped = storable(value)
    assert original(escaped) == value
    assert "\x00" not in escaped
    escaped.encode("utf-8")  # no lone surrogate is left


@pytest.mark.parametrize(
    ("value", "expected"),
    [("plain 42", "plain 42"), ("a\x00b", "a␛␀b"), ("\ud800", "␛\ue000"), ("␛␀", "␛␛␀"), ("😀", "😀")],
)
def test_escape_is_the_documented_one(value: str, expected: str) -> None:
    assert storable(value) == expected


def test_json_is_escaped_at_every_depth() -> None:
    assert storable_json({"a\x00": [{"b": "\udfff"}, 1, None, True]}) == {"a␛␀": [{"b": "␛\ue7ff"}, 1, None, True]}


def test_no_digit_is_added() -> None:
    """flexible-extract takes the last number of a response: an escape must not look like one."""
    every = "".join(map(chr, range(0xD800, 0xE000))) + "\x00␛"
    assert not any(character.isdigit() or character.isascii() for character in storable(every))


def test_postgresql_takes_it(core_sessions: Sessions) -> None:
    with core_sessions() as session:
        for value in ("\x00", "\ud83d", "␛"):
            stored = session.execute(text("select cast(:value as text)"), {"value": storable(value)}).scalar_one()
            assert original(stored) == value


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "␛", "\ud83d", "x␛␀"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_body_that_holds_what_cannot_be_stored_is_never_taken_as_it_is(text: str, ascii_only: bool) -> None:
    body = json.dumps({"text": text}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert may_be_unstorable(body)


@pytest.mark.parametrize("text", ["", "plain", "naïve ✓\n\t\\n", "u0000", '"quoted"'])
def test_an_ordinary_body_is_taken_as_it_is(text: str) -> None:
    assert not may_be_unstorable(json.dumps({"text": text}).encode())
