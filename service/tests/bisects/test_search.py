"""Which commit is tried next: the first bad one is found wherever it is, past commits that cannot be judged."""

import pytest
from driftline.contracts.bisect import BisectCommit, StepOutcome
from driftline_service.bisects.search import End, Try, known_of, next_move, range_of


def commit(place, tree=None, unusable=None):
    return BisectCommit(
        sha=f"{place + 1:040x}", subject=f"commit {place}", kernel_path="kernels", kernel_tree=tree or f"tree {place}",
        unusable=unusable,
    )  # fmt: skip


GOOD = commit(-1)


def searched(commits, first_bad, skipped=()):
    """The end, and how many runs it took, where commits from `first_bad` on are bad."""
    outcomes, places = {}, {each.sha: place for place, each in enumerate(commits)}
    while isinstance(move := next_move(GOOD, commits, outcomes), Try):
        place = places[move.commit.sha]
        assert move.commit.sha not in outcomes
        bad = StepOutcome.BAD if place >= first_bad else StepOutcome.GOOD
        outcomes[move.commit.sha] = StepOutcome.SKIPPED if place in skipped else bad
    return move, len(outcomes)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 33])
def test_the_first_bad_commit_is_found_wherever_it_is(count):
    commits = [commit(place) for place in range(count)]
    for first_bad in range(count):
        end, steps = searched(commits, first_bad)
        assert end.first_bad == commits[first_bad]
        assert steps <= 2 + count.bit_length()


def test_a_commit_that_cannot_be_judged_is_gone_around():
    commits = [commit(place) for place in range(10)]
    end, _ = searched(commits, 7, skipped=(4, 5))
    assert end.first_bad == commits[7]


def test_what_cannot_be_told_apart_is_named_and_nobody_is_blamed():
    commits = [commit(place) for place in range(10)]
    end, _ = searched(commits, 6, skipped=(4, 5))
    assert end == End(
        f"the first bad commit is one of {commits[4].sha[:12]}, {commits[5].sha[:12]}, {commits[6].sha[:12]}; all but the "
        "last of them could not be judged"
    )


def test_commits_without_kernels_are_never_tried():
    commits = [commit(place, unusable="it has no Mamba2 kernels" if place % 2 else None) for place in range(9)]
    end, _ = searched(commits, 8)
    assert end.first_bad is None
    assert searched(commits[::2], 3)[0].first_bad == commits[6]


def test_byte_identical_kernels_are_measured_once():
    commits = [commit(place, tree="before" if place < 20 else "after") for place in range(40)]
    end, steps = searched(commits, 20)
    assert (end.first_bad, steps) == (commits[20], 2)
    untouched = [commit(place, tree=GOOD.kernel_tree) for place in range(5)]
    assert searched(untouched, 0) == (next_move(GOOD, untouched, {}), 0)


@pytest.mark.parametrize(
    ("outcome", "told"),
    [(StepOutcome.GOOD, "is not worse than"), (StepOutcome.SKIPPED, "itself could not be judged")],
)
def test_a_bad_commit_that_is_not_bad_ends_the_search(outcome, told):
    commits = [commit(place) for place in range(8)]
    end = next_move(GOOD, commits, {commits[-1].sha: outcome})
    assert isinstance(end, End)
    assert end.first_bad is None
    assert told in end.message


def test_the_range_narrows():
    commits = [commit(place) for place in range(8)]
    outcomes = {commits[7].sha: StepOutcome.BAD, commits[2].sha: StepOutcome.GOOD, commits[5].sha: StepOutcome.BAD}
    left = range_of(known_of(GOOD, commits, outcomes))
    assert (left.good, left.bad) == (2, 5)
