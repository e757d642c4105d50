"""A folder of lm-eval's files becomes a report on one lane, or is refused by what is wrong with it. Nothing is stored here."""

import hashlib
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from driftline.contracts.imports import ImportRequest
from driftline.contracts.lane import Lane
from driftline.lmeval import BadOutputError, LmEvalOutput, Sample, TaskOutput, TaskResults, open_output
from driftline.scoring import FILTERS
from driftline.scoring.task_config import own_filters

from driftline_service.database.storable import storable
from driftline_service.database.tables import ImportKind
from driftline_service.imports.outcomes import FilterOutcomes, outcomes_of, warnings_of
from driftline_service.imports.reported import NewImport, NewSample, NewScore
from driftline_service.imports.stated_facts import stated_details, stated_facts
from driftline_service.intake.refusal import Refusal
from driftline_service.lanes import Lanes

METRIC = "exact_match"


def asked_lane(wanted: ImportRequest, lanes: Lanes) -> Lane:
    """The lane that a report is of: known before anything is received.

    Raises:
        Refusal: unknown_lane.
    """
    lane = lanes.named(wanted.lane)
    if lane is None:
        known = ", ".join(map(repr, lanes.names))
        raise Refusal("unknown_lane", f"there is no lane {wanted.lane!r}; there are {known}")
    return lane


def understand(folder: Path, wanted: ImportRequest, lane: Lane) -> NewImport:
    """The evaluation in `folder` of the lane's task. Its samples are read from there again when it is stored.

    Raises:
        Refusal: other_task, no_samples, no_exact_match, other_filters, not_finite, no_shots, or the
            reason of what driftline.lmeval finds wrong with the files.
    """
    try:
        return _report(open_output(folder), wanted, lane)
    except BadOutputError as bad:
        raise Refusal(bad.reason, str(bad).replace(f"{folder}/", "").replace(str(folder), "the archive")) from bad


def _report(output: LmEvalOutput, wanted: ImportRequest, lane: Lane) -> NewImport:
    task = _task(output, lane)
    warnings = [*_passed_over(output), *warnings_of(task)]
    outcomes, results = outcomes_of(task, METRIC), output.results
    return NewImport(
        kind=ImportKind.SAMPLES, content_hash=_hash(output, task), lane_name=lane.name, task=task.results.name,
        commit_sha=wanted.commit, repository=wanted.repo, reported_by=wanted.reported_by, note=wanted.note,
        measured_at=_moment(results.date),
        scores=_scores(task.results, len(outcomes.doc_ids)), facts=_storable(stated_facts(results, task.results)),
        details=_storable(stated_details(results, task.results)), warnings=tuple(map(storable, warnings)),
        samples=lambda: _samples(task, outcomes),
    )  # fmt: skip


def _task(output: LmEvalOutput, lane: Lane) -> TaskOutput:
    found = output.tasks.get(lane.task.name)
    if found is None:
        tasks = ", ".join(output.tasks) or "no task"
        raise Refusal("other_task", f"lane {lane.name!r} measures {lane.task.name}; the files hold {tasks}")
    if found.samples_path is None:
        name = f"samples_{lane.task.name}_….jsonl"
        raise Refusal("no_samples", f"{name} is missing; evaluate with --log_samples, or report the figures alone")
    if not any(metric == METRIC for metric, _ in found.results.values):
        raise Refusal("no_exact_match", f"the results of {lane.task.name} have no {METRIC}, by which lanes are judged")
    if others := set(FILTERS) & set(found.results.filters) - own_filters(found.results.config):
        named = " and ".join(sorted(others))
        raise Refusal(
            "other_filters", f"{named} of {lane.task.name} in the files score otherwise than gsm8k's: another task"
        )
    if found.results.shots is None:
        raise Refusal("no_shots", f"{output.results.path.name} does not say how many shots {lane.task.name} had")
    return found


def _passed_over(output: LmEvalOutput) -> list[str]:
    """The newest evaluation counts; that others lay beside it is told."""
    others = ", ".join(path.name for path in output.passed_over)
    return [f"older evaluations in the same archive were passed over: {others}"] if others else []


def _moment(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None  # the file's clock says no time that is one


def _scores(task: TaskResults, questions: int) -> tuple[NewScore, ...]:
    for (metric, name), value in task.values.items():
        if not math.isfinite(value):
            raise Refusal("not_finite", f"{metric},{name} of {task.name} is {value}: that is no score")
    return tuple(
        NewScore(storable(metric), storable(name), value, _finite(task.stderrs.get((metric, name))), questions)
        for (metric, name), value in task.values.items()
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _hash(output: LmEvalOutput, task: TaskOutput) -> str:
    """sha256 over the task's name and the bytes of its files, as unpacked."""
    digest = hashlib.sha256(task.results.name.encode())
    for path in (output.results.path, task.samples_path):
        assert path is not None  # noqa: S101 - _task refused it
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _samples(task: TaskOutput, outcomes: FilterOutcomes) -> Iterator[NewSample]:
    """Each question once: the file holds it once a filter, and the texts are the same."""
    seen: set[int] = set()
    for sample in task.samples():
        if sample.doc_id not in seen:
            seen.add(sample.doc_id)
            yield _sample(sample, outcomes)


def _sample(sample: Sample, outcomes: FilterOutcomes) -> NewSample:
    return NewSample(
        doc_id=sample.doc_id, question=storable(str(sample.doc.get("question", sample.prompt))),
        target=storable(sample.target), doc_hash=storable(sample.doc_hash), prompt_hash=storable(sample.prompt_hash),
        target_hash=storable(sample.target_hash), response=storable(sample.response),
        scores=outcomes.scores_of(sample.doc_id), extracted=outcomes.extracted_of(sample.doc_id),
    )  # fmt: skip


def _storable(texts: dict[str, str]) -> dict[str, str]:
    return {storable(name): storable(text) for name, text in texts.items()}
