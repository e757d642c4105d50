"""How figures are written, in Markdown and on pages alike: scores in four places, differences in points, unknown as a dash."""

from driftline.contracts.cell import CellView, Comparison
from driftline.contracts.words import Metric

UNKNOWN = "–"
NATS_DECIMALS = 5
SCORE_DECIMALS = 4


def score(value: float | None, metric: Metric | str = Metric.EXACT_MATCH) -> str:
    """A score: a fraction in four places, or nats a token in five."""
    if value is None:
        return UNKNOWN
    return f"{value:.{NATS_DECIMALS if metric is Metric.LOGPROB else SCORE_DECIMALS}f}"


def difference(cell: Comparison) -> str:
    """head − base: in percentage points for exact_match, in nats a token for logprob."""
    if cell.base is None or cell.head is None:
        return UNKNOWN
    return signed(cell.head - cell.base, cell.metric)


def signed(value: float | None, metric: Metric | str) -> str:
    """A signed difference in the metric's own unit; a value that rounds to nothing is written without a sign."""
    if value is None:
        return UNKNOWN
    text = f"{value:+.{NATS_DECIMALS}f}" if metric is Metric.LOGPROB else f"{100 * value:+.2f}"
    return text.lstrip("+-") if float(text) == 0 else text


def interval(cell: CellView) -> str:
    """The interval of the difference, in the unit of `difference`, with its level: not all cells of a table share one."""
    if cell.interval is None:
        return UNKNOWN
    low, high = cell.interval
    return f"[{signed(low, cell.metric)}, {signed(high, cell.metric)}] at {100 * cell.interval_level:.0f} %"


def p_value(value: float | None) -> str:
    """A p-value; those below one in ten thousand as such."""
    if value is None:
        return UNKNOWN
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def count(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)


def error(value: float | None) -> str:
    """An error of a kernel, against its oracle."""
    return UNKNOWN if value is None else f"{value:.2g}"


def unit(metric: Metric | str) -> str:
    return "nats/token" if metric is Metric.LOGPROB else "points"
