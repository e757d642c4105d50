"""The interval of a share, over questions that may have been asked several times."""

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def exact_share(hits: float, trials: float, *, level: float) -> tuple[float, float]:
    """Interval of a share at confidence `level`, at least that. Source: Clopper and Pearson 1934 (Biometrika 26, 404).

    Numbers may be broken, as effective ones are.

    Raises:
        ValueError: if `hits` does not fit `trials`, or `level` is not between 0 and 1.
    """
    from scipy.special import betaincinv

    if not 0 <= hits <= trials or trials <= 0:
        raise ValueError(f"{hits} of {trials} is no share")
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1, not at {level}")
    tail = (1 - level) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high


def clustered_share(hits: Counts, trials: Counts, *, level: float) -> tuple[float, float]:
    """Interval of the share of `hits` in `trials`, both per question (shape (questions,)), at confidence `level`.

    A question that flips once is likelier to flip again, so repeats are worth less than as many other questions. Source:
    Korn and Graubard 1998 (Survey Methodology 24, 193): Clopper and Pearson's interval with the number of trials that
    would have the variance seen between questions. With each question tried once it is theirs; with no hit at all
    nothing is known of that variance, and a question counts once however often it was tried.

    Raises:
        ValueError: if the counts do not fit, or there is no trial.
    """
    if hits.shape != trials.shape or np.any(hits < 0) or np.any(hits > trials) or trials.sum() == 0:
        raise ValueError("hits must be between 0 and trials for each question, with at least one trial")
    asked = trials > 0
    hits, trials = hits[asked], trials[asked]
    questions, total = int(trials.size), int(trials.sum())
    share = float(hits.sum() / total)
    return exact_share(share * (size := _effective(hits, trials, share, questions)), size, level=level)


def _effective(hits: Counts, trials: Counts, share: float, questions: int) -> float:
    """Trials of independent questions that would tell as much; never more than were made."""
    total = float(trials.sum())
    if share in (0.0, 1.0) or questions < 2:
        return float(questions)
    spread = float(((hits - share * trials) ** 2).sum()) * questions / (questions - 1) / total**2
    return min(total, share * (1 - share) / spread) if spread > 0 else total
