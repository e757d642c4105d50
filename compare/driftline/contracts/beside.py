"""What stands beside a lane's verdict: divergence, the form of answers, the noise floor. None of it decides."""

from pydantic import Field

from driftline.contracts.base import Contract, Share


class Distribution(Contract):
    """Where something lies over questions: five places that occurred, from the lowest to the highest."""

    questions: int = Field(ge=1)
    lowest: int
    lower_quartile: int
    median: int
    upper_quartile: int
    highest: int


class Divergence(Contract):
    """How far the arms part below the score, and whether the lane parts as far from itself."""

    questions: int
    moved_questions: int = Field(description="questions with any teacher-forced token moved by more than 1e-3 nats")
    largest_move: float
    text_diverged: int
    first_divergent_token: int | None = Field(
        None, description="median index of the first teacher-forced token that moved"
    )
    forced_questions: int | None = Field(None, description="questions with log-probabilities of equally many tokens")
    first_tokens: Distribution | None = Field(None, description="index of the first teacher-forced token that moved")
    first_words: Distribution | None = Field(None, description="index of the first word in which responses differ")
    text_interval: tuple[Share, Share] | None = Field(None, description="of the share of responses that differ; 90 %")
    moved_interval: tuple[Share, Share] | None = Field(None, description="of the share of moved questions; 90 %")
    text_beyond_noise: bool | None = Field(
        None, description="more than the lane's A/A pairs differ; None: none measured"
    )
    moved_beyond_noise: bool | None = Field(None, description="the same of moved questions")


class NoiseFloor(Contract):
    """Flip and divergence rates between evaluations of one and the same commit on one lane. Intervals are 90 %."""

    pairs: int
    questions: int = Field(description="question by question over all pairs, so each counts once a pair")
    flips: int = Field(description="changed correctness under the filter that has more")
    text_diverged: int
    bit_identical: bool
    unstable: bool
    forced_questions: int | None = None
    moved_questions: int | None = None
    flip_interval: tuple[Share, Share] | None = None
    text_interval: tuple[Share, Share] | None = None
    moved_interval: tuple[Share, Share] | None = None
    first_tokens: Distribution | None = None
    first_words: Distribution | None = None


class InvalidAnswers(Contract):
    """Answers from which a filter took nothing, paired by question."""

    filter: str
    base: int
    head: int
    appeared: int = Field(description="something extracted in base, nothing in head")
    vanished: int
    p_value: float


class FormatDrift(Contract):
    """Whether the form of the answers moved rather than what they say."""

    questions: int
    strict_only_lost: int = Field(description="right to wrong under strict-match, right in both under flexible-extract")
    strict_only_gained: int
    strict_only_p: float
    invalid: list[InvalidAnswers]
    drifted: bool
