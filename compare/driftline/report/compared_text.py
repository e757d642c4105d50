"""A comparison of two files in plain words: a short summary, and the explanation that `--explain` prints."""

from collections.abc import Iterator

from driftline.comparison import Compared, TestedCell
from driftline.contracts.cell import Comparison
from driftline.contracts.words import Verdict
from driftline.judge.cell import ALPHA, questions_to_settle
from driftline.lmeval import LmEvalOutput
from driftline.report import figures

MEANING = {
    Verdict.REGRESSED: "regressed: worse than base, by more than chance makes likely",
    Verdict.IMPROVED: "improved: better than base, by more than chance makes likely",
    Verdict.EQUIVALENT: "equivalent: any move is smaller than the margin",
    Verdict.UNDERPOWERED: "underpowered: too few questions to tell a move from none",
    Verdict.NOT_COMPARABLE: "not comparable: a blocking problem below, so nothing is said of the scores it names",
}


def summary(compared: Compared) -> str:
    """The verdict, a line a cell, and the problems."""
    lines = [MEANING[compared.verdict]]
    lines += [_line(each) for each in compared.cells]
    lines += [f"note: {told}" for told in significant_inside(compared)]
    lines += [f"problem, {each.code}: {each.message}" for each in compared.problems if each.blocks]
    lines += [f"note, {each.code}: {each.message}" for each in compared.problems if not each.blocks]
    return "\n".join(lines)


def significant_inside(compared: Compared) -> list[str]:
    """An equivalent cell says something only if it differs significantly all the same."""
    return [
        f"{name(each.comparison)} differs significantly, by {difference(each)}, but wholly inside the margin"
        for each in compared.cells
        if each.comparison.verdict is Verdict.EQUIVALENT
        and each.comparison.p_adjusted is not None
        and each.comparison.p_adjusted <= ALPHA
    ]


def model(output: LmEvalOutput) -> str:
    """The model as the results file calls it; lm-eval leaves the name out of some."""
    return output.results.model_name or "no model named"


def name(cell: Comparison) -> str:
    """task, metric, filter; lm-eval's filter of no filter is left out."""
    return ", ".join([cell.task, str(cell.metric), *([] if cell.filter == "none" else [cell.filter])])


def difference(each: TestedCell) -> str:
    """head − base with its unit."""
    cell = each.comparison
    if cell.base is None or cell.head is None:
        return figures.UNKNOWN
    return f"{moved(each, cell.head - cell.base)} {unit(each)}".rstrip()


def interval(each: TestedCell) -> str:
    """The 90 % interval in the unit of `difference`."""
    ends = each.comparison.interval
    return figures.UNKNOWN if ends is None else f"[{moved(each, ends[0])}, {moved(each, ends[1])}]"


def moved(each: TestedCell, value: float) -> str:
    """A difference of the cell's metric: in points if it is a share, else in its own unit."""
    return figures.signed(value, each.comparison.metric) if each.fraction else f"{value:+.4g}"


def unit(each: TestedCell) -> str:
    return "points" if each.fraction else ""


def visible(each: TestedCell) -> str:
    """The smallest visible drop, as a size."""
    seen = each.comparison.smallest_visible_drop
    return figures.UNKNOWN if seen is None else moved(each, seen).lstrip("+")


def test_name(cell: Comparison) -> str:
    """Which test gave the p-value."""
    return "paired permutation" if cell.lost is None else "exact McNemar"


def _line(each: TestedCell) -> str:
    cell = each.comparison
    if each.cell is None:
        return f"  {name(cell)}: {cell.verdict}"
    counts = "" if cell.lost is None else f", lost {cell.lost}, gained {cell.gained}"
    return (
        f"  {name(cell)}: {cell.verdict}, {figures.score(cell.base)} → {figures.score(cell.head)} ({difference(each)}, "
        f"90 % interval {interval(each)}{counts}, n {cell.n}, p {figures.p_value(cell.p_adjusted)} after Holm, "
        f"{test_name(cell)})"
    )


def explanation(compared: Compared) -> str:
    """Paragraphs: what was compared, what was found, how sure that is, what would make it surer."""
    return "\n\n".join(["\n".join(_compared(compared)), *("\n".join(_cell(compared, each)) for each in compared.cells)])


def _compared(compared: Compared) -> Iterator[str]:
    yield "What was compared"
    for arm, output in (("base", compared.base), ("head", compared.head)):
        yield f"  {arm}: {output.results.path} ({model(output)}, lm-eval {output.results.lm_eval_version})"
    yield "  Each question of base with the same question of head: same number, text, prompt and gold answer, by their hashes."
    for task in compared.tasks:
        if task.questions:
            share = f"{100 * task.text_diverged / task.questions:.1f} %"
            yield f"  {task.name}: {task.questions} questions; {task.response_name} differ in {task.text_diverged} ({share})."
    blocking = [each.message for each in compared.problems if each.blocks]
    if blocking:
        yield "Why some of it is not comparable"
        yield from (f"  {message}" for message in blocking)


def _cell(compared: Compared, each: TestedCell) -> Iterator[str]:
    cell = each.comparison
    yield f"{name(cell)}: {cell.verdict}"
    if each.cell is None or cell.base is None or cell.head is None or cell.p_adjusted is None:
        yield "  Nothing is said of it: see the problems above. Evaluate again as they say."
        return
    yield f"  Found: {_found(each)}"
    yield f"  How sure: {_sure(each, len(compared.cells))}"
    yield f"  Therefore: {_therefore(each)}"
    yield f"  What would make it surer: {_surer(each)}"
    yield from _format(each)


def _found(each: TestedCell) -> str:
    cell = each.comparison
    scores = f"{figures.score(cell.base)} in base, {figures.score(cell.head)} in head, {difference(each)}, over {cell.n} questions"
    if cell.lost is None:
        return f"{scores}."
    if cell.lost == cell.gained == 0:
        return f"{scores}. No answer changed between right and wrong."
    return f"{scores}. Head lost {cell.lost} answers that base had right, and gained {cell.gained} that base had wrong."


def _sure(each: TestedCell, planned: int) -> str:
    cell = each.comparison
    lies = f"The true move lies in {interval(each)} {unit(each)}".rstrip() + " with 90 % confidence."
    if cell.p_value == 1 and cell.base == cell.head:
        return f"nothing speaks for a move (p = 1, {test_name(cell)}). {lies}"
    what = "so uneven a split of the changed answers" if cell.lost is not None else "so large a mean difference"
    tests = "" if planned == 1 else f", {_p(cell.p_adjusted)} after Holm for all {planned} tests"
    return f"if nothing had changed, chance alone would give {what} with {_p(cell.p_value)}{tests} ({test_name(cell)}). {lies}"


def _p(value: float | None) -> str:
    told = figures.p_value(value)
    return f"p {told[0]} {told[1:]}" if told.startswith("<") else f"p = {told}"


def _therefore(each: TestedCell) -> str:
    cell = each.comparison
    known = each.cell is not None and each.cell.margin is not None
    margin = f"the margin of {_margin(each)}" if known else "a margin, which is not known for this metric"
    if cell.verdict is Verdict.EQUIVALENT:
        significant = cell.p_adjusted is not None and cell.p_adjusted <= ALPHA
        less = " The move is no accident, but smaller than what matters." if significant else ""
        return f"the interval is wholly inside {margin}.{less}"
    if cell.verdict is Verdict.UNDERPOWERED:
        return f"p is above {ALPHA}, and the interval is not wholly inside {margin}."
    return f"p is at most {ALPHA}, and the interval is not wholly inside {margin}."


def _margin(each: TestedCell) -> str:
    value = None if each.cell is None else each.cell.margin
    return figures.UNKNOWN if value is None else f"±{moved(each, value).lstrip('+')} {unit(each)}".rstrip()


def _surer(each: TestedCell) -> str:
    cell = each.comparison
    could = ""
    if cell.smallest_visible_drop is not None:
        could = f" This comparison could see a drop of {visible(each)} {unit(each)}".rstrip() + "."
    if cell.verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
        return "evaluate both again: the test tells chance in the questions, not an unlucky run of one side." + could
    if cell.verdict is Verdict.EQUIVALENT:
        return "nothing is needed at this margin; more questions would allow a smaller one." + could
    settle = None if each.cell is None else questions_to_settle(each.cell)
    if settle is None:
        return "more questions alone would not settle it as equivalent, if the difference stays as large." + could
    return f"about {settle} questions in all would settle it, if the difference stays.{could}"


def _format(each: TestedCell) -> Iterator[str]:
    if each.invalid is not None:
        base, head = each.invalid
        yield f"  Format: this filter found no answer in {base} responses of base and {head} of head."
