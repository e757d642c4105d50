"""JSON read strictly: a key given twice is an error, since readers disagree which of the two counts."""

import json
from typing import Any, Final

from driftline.lmeval.refusal import BadOutputError


class _DuplicateKeyError(ValueError):
    pass


def parse(text: bytes, where: str) -> Any:
    """The JSON value of UTF-8 `text`. NaN and infinities are kept as floats, for lm-eval writes them.

    Raises:
        BadOutputError: naming `where`; nul_bytes, bad_encoding, duplicate_key or bad_json.
    """
    if b"\0" in text:
        raise BadOutputError("nul_bytes", f"{where}: holds NUL bytes; the file was damaged, copy or evaluate it again")
    try:
        return _DECODER.decode(text.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise BadOutputError("bad_encoding", f"{where}: not UTF-8 (byte {error.start}); copy the file again") from error
    except _DuplicateKeyError as error:
        raise BadOutputError("duplicate_key", f"{where}: {error}; lm-eval writes no such line") from error
    except RecursionError as error:
        raise BadOutputError("bad_json", f"{where}: nested too deeply for lm-eval's output") from error
    except ValueError as error:
        message = f"{where}: not complete JSON ({error}); the file was cut or damaged, evaluate again"
        raise BadOutputError("bad_json", message) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _DuplicateKeyError(f"the key {twice[:100]!r} is given twice in one object")
    return found


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique)
"""Made once: json.loads would make one for every line of a file."""
