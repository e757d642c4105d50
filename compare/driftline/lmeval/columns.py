"""A task's samples as columns of numbers: all that a comparison needs of them, in some 60 bytes a line.

A samples file of 1 GB has some 300,000 lines, so nothing here keeps a text: hashes are cut to 64 bits, texts are digests,
and `offset` says where a text can be read again. Nothing is judged here; driftline.lmeval.integrity does.
"""

import hashlib
import math
import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from driftline.lmeval.output import TaskOutput
from driftline.lmeval.rendered_prompt import PromptTemplate
from driftline.lmeval.sample import Sample
from driftline.scoring import INVALID


@dataclass(slots=True)
class FilterColumns:
    """One filter's lines in the file's order; row i of every column is one line."""

    doc_ids: "array[int]" = field(default_factory=lambda: array("q"))
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    docs: "array[int]" = field(default_factory=lambda: array("Q"))
    """doc_hash, its first 64 bits"""
    prompts: "array[int]" = field(default_factory=lambda: array("Q"))
    targets: "array[int]" = field(default_factory=lambda: array("Q"))
    texts: "array[int]" = field(default_factory=lambda: array("Q"))
    """digest of all responses"""
    invalid: "array[int]" = field(default_factory=lambda: array("b"))
    """1 where the filter found no answer in the response"""
    values: "dict[str, array[float]]" = field(default_factory=dict)
    """metric -> score of each line; NaN where the line has none or it is not finite"""


@dataclass(slots=True)
class TaskColumns:
    """One task's samples, and what only a look at every line can tell."""

    filters: dict[str, FilterColumns] = field(default_factory=dict)
    unscored: set[str] = field(default_factory=set)
    """metrics that lm-eval keeps no single number a question of"""
    wrong_hashes: list[int] = field(default_factory=list)
    """doc ids of lines whose prompt or gold answer is not what its hash says; the first few"""
    stale_prompts: list[int] = field(default_factory=list)
    """doc ids of lines whose prompt does not hold the question; the first few"""
    stale_arguments: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """generation setting -> (what the task says, what was asked of the engine)"""
    task_hash: str = ""
    """lm-eval's hash over all lines, recomputed"""


FEW = 5
"""Questions named in a message."""


def read_columns(task: TaskOutput) -> TaskColumns:
    """Read the task's samples once.

    Raises:
        BadOutputError: at the first line that is no sample.
    """
    found, digest = TaskColumns(), hashlib.sha256()
    template = PromptTemplate.of(task.results.config)
    asked = task.results.config.get("generation_kwargs")
    settings: Mapping[str, Any] = asked if isinstance(asked, dict) else {}
    for sample in task.samples():
        digest.update((sample.doc_hash + sample.prompt_hash + sample.target_hash).encode("utf-8", "surrogatepass"))
        _append(found, sample)
        _check(found, sample, template)
        for name, value in (sample.request_arguments or {}).items():
            if name in settings and settings[name] != value:
                found.stale_arguments.setdefault(name, (settings[name], value))
    found.task_hash = digest.hexdigest()
    return found


def _append(found: TaskColumns, sample: Sample) -> None:
    columns = found.filters.get(sample.filter)
    if columns is None:
        columns = found.filters[sys.intern(sample.filter)] = FilterColumns()
    row = len(columns.doc_ids)
    columns.doc_ids.append(sample.doc_id)
    columns.offsets.append(sample.offset)
    columns.docs.append(_bits(sample.doc_hash))
    columns.prompts.append(_bits(sample.prompt_hash))
    columns.targets.append(_bits(sample.target_hash))
    columns.texts.append(_text_digest(sample.responses))
    columns.invalid.append(sample.extracted == INVALID)
    for metric, value in sample.values.items():
        if value is None:
            found.unscored.add(metric)
            continue
        column = columns.values.get(metric)
        if column is None:
            column = columns.values[metric] = array("d", [math.nan]) * row
        column.append(value if math.isfinite(value) else math.nan)
    for column in columns.values.values():
        if len(column) == row:  # a metric that other lines have and this one has not
            column.append(math.nan)


def _check(found: TaskColumns, sample: Sample, template: PromptTemplate | None) -> None:
    if len(found.wrong_hashes) < FEW and (
        _sha256(sample.target) != sample.target_hash or _sha256(sample.prompt) != sample.prompt_hash
    ):
        found.wrong_hashes.append(sample.doc_id)
    if template is not None and len(found.stale_prompts) < FEW and not template.asked_in(sample.prompt, sample.doc):
        found.stale_prompts.append(sample.doc_id)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _bits(digest: str) -> int:
    """The first 64 bits of a hexadecimal digest; of anything else, those of its own hash."""
    try:
        return int(digest[:16], 16) & 0xFFFFFFFFFFFFFFFF
    except ValueError:
        return _bits(_sha256(digest))


def _text_digest(texts: tuple[str, ...]) -> int:
    made = hashlib.blake2b(digest_size=8)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        made.update(len(encoded).to_bytes(8, "little") + encoded)
    return int.from_bytes(made.digest(), "little")
