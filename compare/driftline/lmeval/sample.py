"""One line of lm-eval's samples file, and how it becomes a typed value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from driftline.lmeval.refusal import BadOutputError

LARGEST_DOC_ID: Final = 2**31 - 1
"""What databases hold; no data set has as many rows."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One question's outcome under one filter. Texts are as the model gave them: NUL and lone surrogates may occur."""

    doc_id: int
    filter: str
    doc: Mapping[str, Any]
    """the data set's row"""
    target: str
    prompt: str
    """of the first request; the others of a multiple choice differ in the continuation"""
    request_arguments: Mapping[str, Any] | None
    """what the task asked of the engine (until, temperature, …); None for log-likelihood tasks"""
    responses: tuple[str, ...]
    """generated texts, one a repeat; for other tasks one JSON-like text a request"""
    extracted: str
    """what the filter took from the responses"""
    doc_hash: str
    prompt_hash: str
    target_hash: str
    values: Mapping[str, float | None]
    """metric -> this question's score, perhaps not finite; None where lm-eval keeps no single number (f1, perplexity)"""
    offset: int = 0
    """of the line in the (unpacked) file, bytes; TaskOutput.sample_at reads it again"""

    @property
    def response(self) -> str:
        """The text that people compare: the first repeat."""
        return self.responses[0] if self.responses else ""


def sample_from(line: Any, where: str, offset: int = 0) -> Sample:
    """The parsed JSON of one line as a Sample.

    Raises:
        BadOutputError: bad_sample, naming the line and the field.
    """
    if not isinstance(line, dict):
        raise BadOutputError("bad_sample", f"{where}: not an object; is this a samples file of lm-eval?")
    try:
        doc_id = line["doc_id"]
        if type(doc_id) is not int or not 0 <= doc_id <= LARGEST_DOC_ID:
            raise BadOutputError("bad_sample", f"{where}: doc_id is {str(doc_id)[:50]!r}, not a count from 0")
        request = line["arguments"]["gen_args_0"]
        arguments = request.get("arg_1")
        return Sample(
            doc_id=doc_id, filter=_name(line["filter"], where),
            doc=line["doc"] if isinstance(line["doc"], dict) else {"doc": line["doc"]},
            target=str(line["target"]), prompt=_prompt(request["arg_0"]),
            request_arguments=arguments if isinstance(arguments, dict) else None, responses=_responses(line["resps"]),
            extracted=_flat(line["filtered_resps"]), doc_hash=_text(line, "doc_hash", where),
            prompt_hash=_text(line, "prompt_hash", where), target_hash=_text(line, "target_hash", where),
            values={_name(name, where): _value(line[name]) for name in line["metrics"]}, offset=offset,
        )  # fmt: skip
    except KeyError as error:
        message = f"{where}: lacks {error.args[0]!r}, which every samples line of lm-eval 0.4.8 to 0.4.13 has"
        raise BadOutputError("bad_sample", message) from error
    except (TypeError, AttributeError, OverflowError) as error:
        raise BadOutputError("bad_sample", f"{where}: not in the shape of lm-eval's samples ({error})") from error


def _name(value: Any, where: str) -> str:
    """Of a filter or metric: what reports print."""
    if not isinstance(value, str) or not value.isprintable():
        raise BadOutputError("bad_sample", f"{where}: {str(value)[:50]!r} is no name of a filter or metric")
    return value


def _text(line: dict[str, Any], name: str, where: str) -> str:
    if not isinstance(line[name], str):
        raise BadOutputError("bad_sample", f"{where}: {name} is not a text")
    return str(line[name])


def _prompt(argument: Any) -> str:
    """The prompt; of chat APIs it is one JSON text in a list."""
    inner = argument[0] if isinstance(argument, list) and len(argument) == 1 else argument
    return inner if isinstance(inner, str) else str(inner)


def _value(found: Any) -> float | None:
    """A metric of one question: numbers and truth values count; pairs (f1, perplexity) have no score of their own."""
    return float(found) if isinstance(found, bool | int | float) else None


def _responses(found: Any) -> tuple[str, ...]:
    if len(found) == 1:  # one request: its repeats
        return tuple(each if isinstance(each, str) else str(each) for each in found[0])
    return (str(found),)


def _flat(found: Any) -> str:
    return found[0] if isinstance(found, list) and len(found) == 1 and isinstance(found[0], str) else str(found)
