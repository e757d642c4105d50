"""A run's view as Markdown: the verdict in a sentence, then lm-eval's own table for both arms, the paired table, the kernels."""

from collections.abc import Iterator

from driftline.contracts.report import ArmScore, CaseView, LaneView, RunView
from driftline.contracts.words import Confirmed, Verdict
from driftline.report import builds, figures, suite
from driftline.report.beside import remarks
from driftline.report.impact_text import impact_lines
from driftline.report.tables import table, text

SHORT_SHA = 10
MOST_CASES = 20
"""Failed cases listed; the page has all."""


def markdown(view: RunView) -> str:
    """The whole report. Needs no verdict: a run under way is shown as far as it is known."""
    return "\n\n".join(_blocks(view)) + "\n"


def _blocks(view: RunView) -> Iterator[str]:
    yield f"## {text(view.name)}: {view.verdict or view.state}"
    yield f"**{text(view.headline.sentence)}**"
    yield (
        f"head `{view.head[:SHORT_SHA]}` {text(view.head_subject)} against base `{view.base[:SHORT_SHA]}` "
        f"{text(view.base_subject)}, margin {100 * view.margin:.1f} points"
    )
    if view.impact is not None:
        yield from impact_lines(view.impact)
    for lane in view.lanes:
        yield from _lane(lane)
    yield from _kernel_check(view)
    yield from suite.blocks(view)
    yield from builds.blocks(view)
    yield f"<sub>method {text(view.method_version)}, inputs {view.inputs_hash[:12]}, run {view.run_id}</sub>"


def _lane(lane: LaneView) -> Iterator[str]:
    yield f"### {text(lane.name)}: {_lane_verdict(lane)}"
    yield f"{text(lane.model)}, {text(lane.mode_label)}, kernels {text(lane.backend)}, {text(lane.task)}"
    if lane.reasons:
        yield "\n".join(f"- {text(reason)}" for reason in lane.reasons)
    for arm in dict.fromkeys(score.arm for score in lane.scores):
        yield f"{arm}\n\n{_lm_eval_table([score for score in lane.scores if score.arm is arm])}"
    if lane.comparisons:
        yield _paired_table(lane)
    yield _beside(lane)


def _lane_verdict(lane: LaneView) -> str:
    if lane.unsupported:
        return "unsupported"
    if lane.verdict is None:
        return "pending"
    words = [lane.verdict.value]
    words += ["broken"] if lane.broken else []
    words += ["unstable lane"] if lane.unstable else []
    hit = lane.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) and bool(lane.comparisons)
    words += ["suspected, not confirmed"] if hit and lane.confirmed is Confirmed.NO else []
    words += ["confirmed"] if lane.confirmed is Confirmed.YES else []
    return ", ".join(words)


def _lm_eval_table(scores: list[ArmScore]) -> str:
    """lm-eval's own table, as people paste it."""
    header = ("Tasks", "Version", "Filter", "n-shot", "Metric", "", "Value", "", "Stderr")
    rows = []
    for index, each in enumerate(scores):
        named = index == 0 or each.task != scores[index - 1].task
        stderr = figures.score(each.stderr) if each.stderr is not None else "N/A"
        task, version = (text(each.task), text(each.version)) if named else ("", "")
        rows.append(
            (
                task,
                version,
                text(each.filter),
                str(each.n_shot),
                text(each.metric),
                "↑",
                f"{each.value:.4f}",
                "±",
                stderr,
            )
        )
    return table(header, "lrlrlcrcr", rows)


def _paired_table(lane: LaneView) -> str:
    """The comparison itself: question by question."""
    header = ("Metric", "Filter", "n", "Base", "Head", "Head − base", "Interval", "Lost", "Gained", "p", "p (Holm)",
              "Smallest visible drop", "Verdict")  # fmt: skip
    rows = [
        (
            text(cell.metric),
            text(cell.filter),
            str(cell.n),
            figures.score(cell.base, cell.metric),
            figures.score(cell.head, cell.metric),
            f"{figures.difference(cell)} {figures.unit(cell.metric)}",
            figures.interval(cell),
            figures.count(cell.lost),
            figures.count(cell.gained),
            figures.p_value(cell.p_value),
            figures.p_value(cell.p_adjusted),
            figures.signed(cell.smallest_visible_drop, cell.metric).lstrip("+"),
            f"**{cell.verdict}**",
        )
        for cell in lane.comparisons
    ]
    return table(header, "llrrrrrrrrrrl", rows)


def _beside(lane: LaneView) -> str:
    """What stands beside the verdict: divergence, form and the noise floor."""
    lines = [f"{remark.label}: {text(remark.sentence)}" for remark in remarks(lane)]
    if lane.noise is None:
        lines.append("noise floor: not measured yet (`driftline submit --measure-noise` evaluates one commit twice)")
    lines += [
        f"{text(each.field)}: base {text(each.base or 'none')}, head {text(each.head or 'none')}"
        + (" (blocks the comparison)" if each.blocks else "")
        for each in lane.key_differences
    ]
    return "\n".join(f"- {line}" for line in lines)


def _kernel_check(view: RunView) -> Iterator[str]:
    check = view.kernel_check
    yield f"### Kernel check: {check.result}"
    if check.reason:
        yield text(check.reason)
    failed = [case for case in check.cases if case.head_passed is False]
    if failed:
        header = ("Case", "Backend", "Error (head)", "Tolerance", "Error (base)", "Message")
        yield table(header, "llrrrl", [_case_row(case) for case in failed[:MOST_CASES]])
    if len(failed) > MOST_CASES:
        yield f"… and {len(failed) - MOST_CASES} more on the run's page"


def _case_row(case: CaseView) -> tuple[str, ...]:
    kind = "" if case.kind == "contract" else " (outside the contract)"
    return (
        text(case.name) + kind,
        text(case.backend),
        figures.error(case.head_error),
        figures.error(case.tolerance),
        figures.error(case.base_error),
        text(case.message),
    )
