"""The repository's own tests as text: what a reader must see first, each list as short as a comment can hold."""

from collections.abc import Iterator, Sequence

from driftline.contracts.report import LoosenedTolerance, RunView, SuiteTestView, SuiteView
from driftline.contracts.words import SuiteOutcome
from driftline.report.tables import table, text

MOST_TESTS = 10
"""Tests named in each list; the page has all."""


def blocks(view: RunView) -> Iterator[str]:
    """Markdown: nothing where none were asked for."""
    suite = view.suite
    if suite is None:
        return
    yield f"### The repository's own tests: {suite.result.replace('_', ' ')}"
    yield "\n".join(f"- {line}" for line in lines(suite))
    if suite.new_failures:
        rows = [
            (text(one.node_id), one.base.value if one.base else "not there", str(one.head.value if one.head else ""),
             text(one.message.partition("\n")[0]))
            for one in suite.new_failures[:MOST_TESTS]
        ]  # fmt: skip
        yield table(("New failure", "Base", "Head", "Message"), "lccl", rows)


def lines(suite: SuiteView) -> Iterator[str]:
    """One sentence each for what differs between the arms, in words that also stand on the page."""
    if suite.reason:
        yield text(suite.reason)
    yield f"head: {counted(suite.head_counts)}; base: {counted(suite.base_counts)}"
    named = (
        ("fail on head and not on base", suite.new_failures),
        ("fail on both arms, so not for this commit", suite.known_failures),
        ("fixed by head", suite.fixed),
        ("newly skipped: ran on base", suite.newly_skipped),
        ("removed: on base and no more on head", suite.removed),
    )
    for words, tests in named:
        if tests:
            yield f"{len(tests)} {words}: {_names(tests)}"
    for one in suite.by_gpu[:MOST_TESTS]:
        yield (
            f"differs by GPU: {text(one.node_id)} {one.here_outcome.value} on {text(one.here)}, {one.there_outcome.value} on "
            f"{text(one.there)} at {one.commit[:10]}"
        )
    for tolerance in suite.loosened[:MOST_TESTS]:
        yield loosened_line(tolerance)
    if len(suite.loosened) > MOST_TESTS:
        yield f"… and {len(suite.loosened) - MOST_TESTS} more loosened tolerances"


def loosened_line(one: LoosenedTolerance) -> str:
    where = f" in {text(one.scope)}" if one.scope else ""
    return f"tolerance loosened: {text(one.file)}:{one.line}{where}: {text(one.name)} {one.base_value:g} → {one.head_value:g}"


def counted(counts: dict[SuiteOutcome, int]) -> str:
    """E.g. "40 passed, 2 failed", in the order of SuiteOutcome."""
    return (
        ", ".join(f"{counts[each]} {each.value.replace('_', ' ')}" for each in SuiteOutcome if each in counts)
        or "nothing"
    )


def _names(tests: Sequence[SuiteTestView]) -> str:
    named = ", ".join(text(one.node_id) for one in tests[:MOST_TESTS])
    return f"{named}, …" if len(tests) > MOST_TESTS else named
