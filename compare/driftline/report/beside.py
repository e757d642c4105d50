"""What stands beside a lane's verdict, in sentences that Markdown and pages share: divergence, form, the noise floor."""

from collections.abc import Iterator
from typing import NamedTuple

from driftline.contracts.beside import Distribution, Divergence, FormatDrift, NoiseFloor
from driftline.contracts.report import LaneView

Interval = tuple[float, float]


class Remark(NamedTuple):
    """A label of a word or two, and a sentence about the lane. Both are our own words and hold no foreign text."""

    label: str
    sentence: str


def remarks(lane: LaneView) -> list[Remark]:
    """Everything that was measured; what was not is left out, and told where the reader can do something about it."""
    return list(_remarks(lane))


def _remarks(lane: LaneView) -> Iterator[Remark]:
    if lane.divergence is not None:
        yield Remark("responses", _responses(lane.divergence, lane.noise))
        yield Remark("tokens", _tokens(lane.divergence, lane.noise))
    if lane.format_drift is not None:
        yield Remark("form", _form(lane.format_drift))
    if lane.noise is not None:
        yield Remark("noise floor", _noise(lane.noise))


def _responses(seen: Divergence, noise: NoiseFloor | None) -> str:
    told = f"{_share(seen.text_diverged, seen.questions, seen.text_interval)} responses differ in text"
    told += _first("word", seen.first_words)
    if noise is None or noise.text_interval is None:
        return told
    floor = _share(noise.text_diverged, noise.questions, noise.text_interval) + _first("word", noise.first_words)
    return f"{told}; between evaluations of one commit {floor}{_weighed(beyond=seen.text_beyond_noise)}"


def _tokens(seen: Divergence, noise: NoiseFloor | None) -> str:
    asked = seen.questions if seen.forced_questions is None else seen.forced_questions
    if not asked:
        return "no log-probabilities to compare"
    told = (
        f"{_share(seen.moved_questions, asked, seen.moved_interval)} questions have a teacher-forced token moved by more "
        f"than 0.001 nats, the largest by {seen.largest_move:.3g}"
    )
    told += _first("token", seen.first_tokens) or _median_token(seen)
    if noise is None or noise.moved_interval is None or noise.moved_questions is None or noise.forced_questions is None:
        return told
    floor = _share(noise.moved_questions, noise.forced_questions, noise.moved_interval)
    floor += _first("token", noise.first_tokens)
    return f"{told}; between evaluations of one commit {floor}{_weighed(beyond=seen.moved_beyond_noise)}"


def _median_token(seen: Divergence) -> str:
    """Of a view stored before the whole distribution was."""
    return "" if seen.first_divergent_token is None else f", first at token {seen.first_divergent_token} in the median"


def _share(count: int, of: int, interval: Interval | None) -> str:
    if interval is None:
        return f"{count} of {of}"
    low, high = interval
    return f"{count} of {of} ({_percent(count / of)}; 90 % interval {_percent(low)} to {_percent(high)})"


def _percent(share: float) -> str:
    """A tenth of a percent is told, and less than half of it as less: it is not nothing."""
    return "<0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def _first(what: str, places: Distribution | None) -> str:
    if places is None:
        return ""
    if places.questions == 1:
        return f", first at {what} {places.median}"
    return (
        f", first at {what} {places.median} in the median (half of them {places.lower_quartile} to "
        f"{places.upper_quartile}, all {places.lowest} to {places.highest})"
    )


def _weighed(*, beyond: bool | None) -> str:
    if beyond is None:
        return ""
    return ": more than this lane's own noise" if beyond else ": not shown to be more than this lane's own noise"


def _form(seen: FormatDrift) -> str:
    told = (
        f"{seen.strict_only_lost} lost and {seen.strict_only_gained} gained under strict-match alone; nothing extracted "
        + ", ".join(f"{each.filter} {each.base} on base and {each.head} on head" for each in seen.invalid)
    )
    return f"format drift: {told}" if seen.drifted else f"{told}: no format drift"


def _noise(noise: NoiseFloor) -> str:
    repeats = f"{noise.pairs} {'pair' if noise.pairs == 1 else 'pairs'} of evaluations of one commit"
    if noise.bit_identical:
        return f"{repeats}, identical bit for bit: any difference is the commit's"
    told = f"{_share(noise.flips, noise.questions, noise.flip_interval)} answers turned right or wrong in {repeats}"
    return f"{told}; the lane differs from itself" if noise.unstable else told
