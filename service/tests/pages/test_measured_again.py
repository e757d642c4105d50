"""In Chromium: the pages of what is measured more than once, in each of its states: searches, fresh pairs, change points."""

from pathlib import Path
from urllib.parse import quote

import pytest
from driftline.contracts.bisect import BisectCommit, BisectState, StepOutcome
from driftline.contracts.change_points import Decision
from driftline.contracts.change_state import ChangeState
from driftline.contracts.words import Confirmed, Layout, Verdict
from driftline_service.clock import now_utc
from driftline_service.database import run_queries
from driftline_service.database.tables import Bisect, BisectStep
from driftline_service.imports import change_states
from driftline_service.imports.change_points import lane_change_points
from driftline_service.lanes import read_lanes
from scripted.history import STEP, measured_history, sha
from scripted.tab import OVERFLOWS

LANE = "canary V1"
LANES = read_lanes(Path(__file__).parents[3] / "driftline.toml")
BADGES = "[...document.querySelectorAll('main .badge')].map((each) => each.textContent.trim())"
SENTENCE = "document.querySelector('.headline .sentence').textContent.replace(/\\s+/g, ' ').trim()"
REFRESHES = "document.querySelector('meta[http-equiv=refresh]') !== null"
OUTCOMES = (StepOutcome.BAD, StepOutcome.GOOD, StepOutcome.SKIPPED, None)


def commit(place):
    return BisectCommit(sha=sha(place), subject=f"commit {place}", kernel_path="kernels", kernel_tree=sha(place))


@pytest.fixture
def searched(world):
    """Stores a search over five commits, with a step of each outcome."""

    def stored(state, message, first_bad=None):
        with world.sessions.begin() as session:
            bisect = Bisect(
                repository_id=run_queries.repository_id(session, "https://example.org/kernels.git", "main"),
                layout=Layout.MAMBA2_VARLEN, good=commit(0).model_dump(mode="json"), margin=0.025, created_by="Ada",
                commits=[commit(place).model_dump(mode="json") for place in range(1, 6)],
                lane=world.lane().model_dump(mode="json"), state=state, message=message, first_bad_sha=first_bad,
                finished_at=now_utc() if state.finished else None,
            )  # fmt: skip
            session.add(bisect)
            session.flush()
            bisect_id = bisect.id
        for number, outcome in enumerate(OUTCOMES[: 4 if not state.finished else 3], 1):
            run_id = world.submit()
            with world.sessions.begin() as session:
                why = f"<b>why {number}</b>" if outcome else ""
                session.add(
                    BisectStep(
                        bisect_id=bisect_id, number=number, sha=sha(6 - number), run_id=run_id, outcome=outcome, why=why
                    )
                )  # fmt: skip
        return bisect_id

    return stored


@pytest.mark.parametrize(
    ("state", "message", "first_bad", "sentence"),
    [
        (BisectState.FOUND, "it is the first bad commit", sha(5), "First bad commit: 06cccccccc commit 5"),
        (BisectState.INCONCLUSIVE, "the first bad commit is one of two", None, "the first bad commit is one of two."),
        (BisectState.CANCELLED, "no longer wanted", None, "no longer wanted."),
        (BisectState.RUNNING, "", None, "One of 1 commits is the first bad one, if any is."),
    ],
)
def test_a_search_in_each_state(site, searched, tab, pictures, state, message, first_bad, sentence):
    bisect_id = searched(state, message, first_bad)
    for width, dark in ((400, False), (1240, True)):
        tab.show(f"{site.base_url}/bisects/{bisect_id}", width=width, dark=dark)
        assert not tab.ask(OVERFLOWS)
        tab.picture(pictures / f"bisect-{state}-{width}.png")
    assert tab.ask(SENTENCE) == sentence
    badges = " ".join(tab.ask(BADGES))
    assert all(each in badges for each in (state, "bad", "good", "skipped"))
    assert tab.ask(REFRESHES) is not state.finished
    assert tab.ask("document.querySelectorAll('tbody tr').length") == (3 if state.finished else 4)
    assert tab.ask("document.querySelectorAll('td.message b').length") == 0, "somebody else's text is text"
    tab.show(f"{site.base_url}/bisects", width=400)
    assert not tab.ask(OVERFLOWS)
    tab.ask("document.querySelector('tbody a').click()")
    tab.wait_for(f"location.pathname === '/bisects/{bisect_id}' && document.readyState === 'complete'")


def test_no_search_yet_says_how_to_begin_one(site, world, tab):
    tab.show(f"{site.base_url}/bisects", width=400)
    assert "driftline bisect --repo" in tab.ask("document.querySelector('main').textContent")
    assert not tab.ask(OVERFLOWS)


@pytest.mark.parametrize(
    ("confirmed", "told"),
    [(Confirmed.NO, "? suspected, not confirmed"), (Confirmed.YES, "✓ confirmed"), (Confirmed.NOT_NEEDED, None)],
)
def test_a_hit_is_shown_as_far_as_it_is_confirmed(site, store, rich_view, tab, pictures, confirmed, told):
    lanes = [each.model_copy(update={"confirmed": confirmed}) for each in rich_view.lanes[1:]]
    assert lanes[0].verdict is Verdict.REGRESSED
    run_id = store(rich_view.model_copy(update={"lanes": lanes}))
    for width in (1240, 400):
        tab.show(f"{site.base_url}/runs/{run_id}", width=width)
        assert not tab.ask(OVERFLOWS)
        tab.picture(pictures / f"confirmed-{confirmed}-{width}.png")
    found = [" ".join(each.split()) for each in tab.ask(BADGES) if "confirmed" in each]
    assert found == ([told] if told else [])


@pytest.mark.parametrize(
    "states",
    [
        (),
        (ChangeState.CONFIRMED,),
        (ChangeState.CONFIRMED, ChangeState.ACKNOWLEDGED),
        (ChangeState.IGNORED,),
        (ChangeState.CONFIRMED, ChangeState.FIXED),
    ],
    ids=lambda states: str(states[-1]) if states else "detected",
)
def test_a_change_point_in_each_state(site, world, tab, pictures, states):
    measured_history(world)
    for state in states:
        decide(world, state)
    expected = states[-1] if states else ChangeState.DETECTED
    for width, dark in ((1240, True), (400, False)):
        tab.show(f"{site.base_url}/lanes/{quote(LANE)}", width=width, dark=dark)
        assert not tab.ask(OVERFLOWS)
        tab.picture(pictures / f"change-{expected}-{width}.png")
    shown = " ".join(tab.ask("document.querySelector('section[aria-labelledby^=changes]').textContent").split())
    assert f"Since {sha(STEP)[:10]}, after {sha(STEP - 1)[:10]}: strict-match 0.57" in shown
    assert [each.split()[-1] for each in tab.ask(BADGES) if each.split()[-1] in list(ChangeState)] == [expected]
    assert all(f"{state} by Ada," in shown and f"<i>{state}</i> it is" in shown for state in states)


def decide(world, state):
    """As POST /api/v1/lanes/{name}/change-points does; who may is tested with the address."""
    decision = Decision(state=state, who="Ada", why=f"<i>{state}</i> it is", at=now_utc())
    with world.sessions.begin() as session:
        found = lane_change_points(session, LANE, LANES, repository=None)
        assert change_states.decide(session, found, sha(STEP), decision, filter_name=None) == 1
