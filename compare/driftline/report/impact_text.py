"""The impact report in words: one sentence, then what it rests on, as Markdown. Pure."""

from collections.abc import Iterator, Sequence

from driftline.contracts.impact import AccuracyTest, AffectedModel, ImpactView
from driftline.contracts.words import Layout
from driftline.report.tables import table, text

MOST_NAMES = 8
MOST_TESTS = 3
MOST_PLACES = 24


def impact_sentence(view: ImpactView) -> str:
    """Such as: touches ssd_chunk_scan: granitemoehybrid, mamba2 are affected; your CI runs no accuracy test for it."""
    changed = [each.operator for each in view.touched if each.definitions or each.deleted]
    if not changed and not view.wide:
        return "touches no code that a model runs" if view.touched else "touches nothing that a model imports"
    what = _listed(list(dict.fromkeys(changed)) or [path.rpartition("/")[2] for path in view.wide])
    return f"touches {what}: {_affected(view)}; {_tested(view)}"


def impact_lines(view: ImpactView) -> Iterator[str]:
    """Markdown blocks: the sentence, a table of models or operators, and the lanes that cannot see the change."""
    yield f"**Impact:** {text(impact_sentence(view))}"
    if view.models:
        yield table(
            ("Model", "Accuracy test in your CI", "Lane here"),
            "lll",
            [_row(model) for model in view.models[:MOST_PLACES]],
        )
    if len(view.models) > MOST_PLACES:
        yield f"… and {len(view.models) - MOST_PLACES} more models"
    if view.operators:
        rows = [(text(each.operator), ", ".join(each.backends)) for each in view.operators]
        yield table(("Operator", "Backends"), "ll", rows)
    notes = [f"{text(each.lane)} cannot see this change: {text(each.why)}" for each in view.lanes if not each.reached]
    notes += [f"every model may run `{text(path)}`" for path in view.wide[:MOST_TESTS]]
    if len(view.wide) > MOST_TESTS:
        notes.append(f"… and {len(view.wide) - MOST_TESTS} more changed files of the engine")
    notes += [f"`{text(path)}` is no Python that can be read" for path in view.unread[:MOST_TESTS]]
    if notes:
        yield "\n".join(f"- {note}" for note in notes)


def tests_in_words(tests: Sequence[AccuracyTest]) -> str:
    """Where CI asks for a model, or that it does not."""
    if not tests:
        return "none"
    sure = [test for test in tests if test.sure]
    told = [f"{test.model} ({test.path}:{test.line})" for test in (sure or tests)[:MOST_TESTS]]
    more = len(sure or tests) - len(told)
    return ("" if sure else "perhaps ") + ", ".join(told) + (f" and {more} more" if more else "")


def _affected(view: ImpactView) -> str:
    if view.layout is Layout.VLLM:
        names = [model.name for model in view.models]
        if view.wide:
            return "every model may be affected" + (f", {_listed(names)} for sure" if names else "")
        return f"{_listed(names)} {_are(names)} affected" if names else "no model's code refers to it"
    names = [f"{each.operator} ({', '.join(each.backends)})" for each in view.operators]
    return f"{_listed(names)} {_are(names)} affected" if names else "no operator runs it"


def _tested(view: ImpactView) -> str:
    """What CI asks of what is affected; of an unread or absent CI configuration it says so."""
    if view.ci_files == 0:
        return "the repository has no CI configuration in .buildkite or .github"
    if view.layout is not Layout.VLLM or not view.models:
        count = len(view.ci_accuracy)
        return f"your CI names {count} models in accuracy tests" if count else "your CI runs no accuracy test"
    sure = [model.name for model in view.models if any(test.sure for test in model.tests)]
    alike = [model.name for model in view.models if model.tests and model.name not in sure]
    if not sure and not alike:
        return "your CI runs no accuracy test for " + ("it" if len(view.models) == 1 else "any of them")
    told = [f"has an accuracy test for {_listed(sure)}"] if sure else []
    told += [f"may have one for {_listed(alike)}"] if alike else []
    rest = [model.name for model in view.models if not model.tests]
    told += [f"none for {_listed(rest) if len(rest) <= MOST_NAMES else f'{len(rest)} others'}"] if rest else []
    return "your CI " + ", ".join(told)


def _row(model: AffectedModel) -> tuple[str, str, str]:
    return text(model.name), text(tests_in_words(model.tests)), text(", ".join(model.lanes) or "none")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_NAMES])
    return shown + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
