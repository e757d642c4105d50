"""Text from outside that PostgreSQL can hold. It cannot hold NUL, nor half a surrogate pair; models print both.

The escape, undone by `original`: `␛` (U+241B) comes before what stands for an unstorable character.
    NUL                      ␛␀   (U+241B U+2400)
    lone surrogate U+D800+n  ␛ and the private-use character U+E000+n
    ␛ itself                 ␛␛
No digit and no ASCII letter is added, so that no answer extracted from a response changes.
"""

import re
from typing import Any

ESCAPE = "\u241b"
NUL = "\u2400"
_FIRST_SURROGATE = 0xD800
_FIRST_PRIVATE = 0xE000
_UNSTORABLE = re.compile(f"[\x00\ud800-\udfff{ESCAPE}]")
_SURROGATE_BYTES = re.compile(rb"\xed[\xa0-\xbf]")
_UNSTORABLE_IN_JSON = re.compile(rb"\\u(?:0000|241[bB]|[dD][89a-fA-F])")
_ESCAPED = re.compile(f"{ESCAPE}([{ESCAPE}{NUL}\ue000-\ue7ff])")


def storable(text: str) -> str:
    """The text with every unstorable character escaped; most text is returned as it is."""
    return _UNSTORABLE.sub(lambda match: ESCAPE + _stand_in(match[0]), text)


def original(text: str) -> str:
    """What `storable` was given."""
    return _ESCAPED.sub(lambda match: _stood_for(match[1]), text)


def storable_json(value: Any) -> Any:
    """A parsed JSON value with every string in it, keys too, made storable."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [storable_json(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable_json(item) for key, item in value.items()}
    return value


def may_be_unstorable(body: bytes) -> bool:
    """Whether JSON holds what cannot be stored, its escape, or ␛. A pair of surrogates and an escaped backslash look like it
    too: True says only that each string must be looked at."""
    found = _UNSTORABLE_IN_JSON.search(body) or _SURROGATE_BYTES.search(
        body
    )  # apart: each begins with bytes of its own
    return found is not None or ESCAPE.encode() in body


def _stand_in(character: str) -> str:
    if character == "\x00":
        return NUL
    if character == ESCAPE:
        return ESCAPE
    return chr(ord(character) - _FIRST_SURROGATE + _FIRST_PRIVATE)


def _stood_for(character: str) -> str:
    if character == NUL:
        return "\x00"
    if character == ESCAPE:
        return ESCAPE
    return chr(ord(character) - _FIRST_PRIVATE + _FIRST_SURROGATE)
