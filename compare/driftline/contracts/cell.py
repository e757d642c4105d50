"""One paired test as readers get it: a run's and a comparison of two outputs say it alike.

Apart from the run's report, since `driftline compare` must start fast and shows no run.
"""

from typing import Annotated

from pydantic import Field

from driftline.contracts.base import Contract, Share
from driftline.contracts.words import Metric, Verdict

MetricName = Annotated[Metric | str, Field(union_mode="left_to_right")]
"""The service's own metrics, or any that lm-eval reports."""


class Comparison(Contract):
    """One cell: two evaluations, question by question, under one metric and filter. Scores are fractions or nats a token."""

    task: str
    metric: MetricName
    filter: str = Field(description="strict-match, flexible-extract; 'teacher-forced' for logprob")
    n: int = Field(ge=0)
    base: float | None
    head: float | None
    lost: int | None = Field(description="right in base, wrong in head; null for logprob")
    gained: int | None
    p_value: float | None
    p_adjusted: float | None
    interval: tuple[float, float] | None = Field(
        description="of head - base; 90 %, of exact_match on a lane that may stop early 92 %"
    )
    smallest_visible_drop: float | None
    verdict: Verdict


class CellView(Comparison):
    """A cell as people are shown it: with the level of its interval."""

    interval_level: Share = Field(0.9, description="older judgements do not say, and had no other")
