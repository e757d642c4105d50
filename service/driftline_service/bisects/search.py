"""Which commit is tried next, and when the search is over: a pure function of the commits and what is known of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from driftline.contracts.bisect import BisectCommit, StepOutcome


@dataclass(frozen=True, slots=True)
class Try:
    """Measure this commit against good."""

    commit: BisectCommit


@dataclass(frozen=True, slots=True)
class End:
    """Nothing is left to try. `first_bad` is None where it could not be narrowed down to one commit."""

    message: str
    first_bad: BisectCommit | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """The first bad commit is one of commits[good + 1 : bad + 1]; `good` is -1 for the good commit itself."""

    good: int
    bad: int


def next_move(good: BisectCommit, commits: Sequence[BisectCommit], outcomes: Mapping[str, StepOutcome]) -> Try | End:
    """What to do, given the outcome of each SHA that was tried. `commits`: first-parent after good up to bad, oldest first.

    Bad itself is tried first: a search between two commits that do not differ would end at a commit without fault.
    """
    bad = commits[-1]
    known = known_of(good, commits, outcomes)
    match known[-1]:
        case None:
            return Try(bad)
        case StepOutcome.SKIPPED:
            return End(
                f"{bad.sha[:12]} itself could not be judged ({bad.unusable or 'see its run'}); name another bad commit"
            )
        case StepOutcome.GOOD:
            return End(f"{bad.sha[:12]} is not worse than {good.sha[:12]} on this lane: there is nothing to find")
        case StepOutcome.BAD:
            pass
    left = range_of(known)
    open_places = [place for place in range(left.good + 1, left.bad) if known[place] is None]
    if open_places:
        middle = (left.good + left.bad) / 2
        return Try(commits[min(open_places, key=lambda place: (abs(place - middle), place))])
    first = commits[left.bad]
    if left.bad - left.good == 1:
        return End(f"{first.sha[:12]} is the first bad commit", first)
    names = ", ".join(commit.sha[:12] for commit in commits[left.good + 1 : left.bad + 1])
    return End(f"the first bad commit is one of {names}; all but the last of them could not be judged")


def known_of(
    good: BisectCommit, commits: Sequence[BisectCommit], outcomes: Mapping[str, StepOutcome]
) -> list[StepOutcome | None]:
    """What is known of each commit. Byte-identical kernels share an outcome, so most commits are never tried."""
    by_tree = {commit.kernel_tree: outcomes[commit.sha] for commit in commits if commit.sha in outcomes}
    by_tree[good.kernel_tree] = StepOutcome.GOOD
    return [
        StepOutcome.SKIPPED if commit.unusable else outcomes.get(commit.sha) or by_tree.get(commit.kernel_tree)
        for commit in commits
    ]


def range_of(known: Sequence[StepOutcome | None]) -> Range:
    """The place of the first bad commit as far as it is known; the last commit is taken for bad until it is tried."""
    bad = next((place for place, outcome in enumerate(known) if outcome is StepOutcome.BAD), len(known) - 1)
    good = max((place for place in range(bad) if known[place] is StepOutcome.GOOD), default=-1)
    return Range(good, bad)
