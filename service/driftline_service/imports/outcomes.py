"""What each question scored under each filter, once the files are known to hold together."""

from dataclasses import dataclass, field

from driftline.contracts.words import Arm
from driftline.lmeval import TaskOutput
from driftline.lmeval.columns import read_columns
from driftline.lmeval.integrity import task_problems

from driftline_service.database.storable import storable
from driftline_service.intake.refusal import Refusal

LARGEST_DOC_ID = 2**31 - 1
"""What the column holds."""

MOST_PROBLEMS = 5
"""Problems named in a refusal; the first usually causes the others."""

ARM = Arm.HEAD
"""The integrity check asks for one; its name is taken out of what people read."""


@dataclass(frozen=True, slots=True)
class FilterOutcomes:
    """Scores and extracted answers: filter -> question -> value. Every text is storable."""

    scores: dict[str, dict[int, float]] = field(default_factory=dict)
    extracted: dict[str, dict[int, str]] = field(default_factory=dict)

    @property
    def doc_ids(self) -> frozenset[int]:
        return frozenset(doc_id for scores in self.scores.values() for doc_id in scores)

    def scores_of(self, doc_id: int) -> dict[str, float]:
        return {name: scores[doc_id] for name, scores in self.scores.items() if doc_id in scores}

    def extracted_of(self, doc_id: int) -> dict[str, str]:
        return {name: texts[doc_id] for name, texts in self.extracted.items() if doc_id in texts}


def warnings_of(task: TaskOutput) -> list[str]:
    """What the integrity check remarks on.

    Raises:
        Refusal: the code of the worst problem, naming the first few, if any blocks.
        BadOutputError: if a line cannot be read.
    """
    problems = task_problems(ARM, task, read_columns(task))
    told = [problem.message.removeprefix(f"{ARM}, {task.results.name}: ") for problem in problems]
    blocking = [problem for problem in problems if problem.blocks]
    if blocking:
        more = len(blocking) - MOST_PROBLEMS
        named = "; ".join(told[: min(len(blocking), MOST_PROBLEMS)]) + (f"; and {more} more" if more > 0 else "")
        raise Refusal(blocking[0].code, f"the samples of {task.results.name} do not hold together: {named}")
    return told


def outcomes_of(task: TaskOutput, metric: str) -> FilterOutcomes:
    """One pass over the samples.

    Raises:
        Refusal: repeated_answers, number_too_large or no_exact_match.
        BadOutputError: if a line cannot be read.
    """
    found = FilterOutcomes()
    for sample in task.samples():
        where = f"question {sample.doc_id} under {sample.filter!r}"
        if sample.doc_id > LARGEST_DOC_ID:
            raise Refusal("number_too_large", f"{where[:80]}: more than {LARGEST_DOC_ID} questions are no data set")
        if len(sample.responses) != 1:
            raise Refusal("repeated_answers", f"{where} has {len(sample.responses)} responses; a lane asks once")
        value = sample.values.get(metric)
        if value is None:
            raise Refusal("no_exact_match", f"{where} has no {metric}, by which lanes are judged")
        name = storable(sample.filter)
        found.scores.setdefault(name, {})[sample.doc_id] = value
        found.extracted.setdefault(name, {})[sample.doc_id] = storable(sample.extracted)
    return found
