"""What pages compute for themselves: spans, marks, changes, order, pages of answers."""

from datetime import UTC, datetime, timedelta

import pytest
from driftline.contracts.report import BuildView, CaseView, ChangedSample
from driftline.contracts.words import CaseKind
from driftline.report.marked_text import marked_text
from driftline_service.pages.case_choice import case_choice
from driftline_service.pages.changes import changes, is_changed
from driftline_service.pages.endings import resubmit_command
from driftline_service.pages.samples_page import moved_filters, samples_page
from driftline_service.pages.times import about, span

START = datetime(2026, 12, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (372, "6 min 12 s"), (3600, "1 h"), (7500, "2 h 5 min"), (90000, "1 d 1 h"),
     (-5, "0 s")],
)  # fmt: skip
def test_span(seconds, text):
    assert span(START, START + timedelta(seconds=seconds)) == text


def test_an_unknown_span_is_not_nought():
    assert span(START, None) == span(None, START) == "–"


def test_a_text_is_cut_at_the_word_and_stays_whole():
    cut = marked_text("so  she\n has 42 eggs", 3)
    assert (cut.before, cut.word, cut.after, cut.ended) == ("so  she\n has ", "42", " eggs", False)
    assert marked_text("so she", None).before == "so she"
    ended = marked_text("so she", 2)
    assert (ended.before, ended.word, ended.ended) == ("so she", "", True)


def _build(**figures):
    same = {"kernel": "k", "config": "c", "arch": "sm_90"}
    return BuildView(
        **same,
        **(
            {f"{arm}_{what}": 0 for arm in ("base", "head") for what in ("registers", "spills", "shared_memory")}
            | figures
        ),
    )


def test_changes_have_words():
    build = _build(base_registers=96, head_registers=128, base_spills=8, head_spills=None, base_shared_memory=None)
    assert [change.word for change in changes(build)] == ["more", "gone", "new"]
    assert is_changed(build)
    assert not is_changed(_build())
    assert is_changed(_build(head_error="ptxas failed"))


def _case(name, *, passed, kind=CaseKind.CONTRACT, ratio=None):
    return CaseView(
        name=name, kind=kind, backend="torch", tolerance=1e-4, base_passed=True, head_passed=passed, base_error=1e-6,
        head_error=1.0, ratio=ratio, config="", message="",
    )  # fmt: skip


def test_failed_cases_come_first_and_those_of_the_contract_before_others():
    cases = [
        _case("fine", passed=True, ratio=9.0), _case("outside", passed=False, kind=CaseKind.OUTSIDE, ratio=99.0),
        _case("bad", passed=False, ratio=2.0), _case("worse", passed=False, ratio=5.0), _case("unknown", passed=None),
    ]  # fmt: skip
    chosen = case_choice(cases, failed_only=False)
    assert [case.name for case in chosen.shown] == ["worse", "bad", "outside", "fine", "unknown"]
    assert [case.name for case in case_choice(cases, failed_only=True).shown] == ["worse", "bad", "outside"]
    assert (chosen.failed, chosen.total) == (3, 5)


def _sample(lane="a V1", base=True, head=False):
    return ChangedSample(
        lane=lane, doc_id=1, question="q", target="t", base_response="x", head_response="y", logprob_move=None,
        base_right={"strict-match": base, "flexible-extract": True}, first_different_word=0,
        head_right={"strict-match": head, "flexible-extract": True},
    )  # fmt: skip


def test_answers_are_paged_lane_by_lane():
    changed = [_sample()] * 45 + [_sample("b V1")]
    page = samples_page(changed, lanes=["a V1", "b V1"], lane="a V1", offset=20)
    assert (len(page.shown), page.offset, page.previous, page.next, page.total) == (20, 20, 0, 40, 45)
    assert page.counts == {"a V1": 45, "b V1": 1}
    last = samples_page(changed, lanes=["a V1", "b V1"], lane="a V1", offset=999)
    assert (len(last.shown), last.offset, last.next) == (5, 40, None)
    assert samples_page([], lanes=[], lane="", offset=0).shown == ()


@pytest.mark.parametrize(
    ("base", "head", "word"),
    [(True, False, "lost"), (False, True, "gained"), (True, True, "right in both"), (False, False, "wrong in both")],
)
def test_filters_say_what_became_of_them(base, head, word):
    assert dict(moved_filters(_sample(base=base, head=head))) == {
        "strict-match": word,
        "flexible-extract": "right in both",
    }


def test_a_command_to_paste_is_safe():
    command = resubmit_command("https://x.org/a b;rm.git", base="b" * 40, head="d" * 40)
    assert command == f"driftline submit --repo 'https://x.org/a b;rm.git' --head {'d' * 40} --base {'b' * 40} --watch"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "under a minute"), (59, "under a minute"), (60, "1 min"), (230, "4 min"), (3599, "1 h"), (7800, "2 h 10 min")],
)
def test_a_forecast_is_no_finer_than_it_is_worth(seconds, words):
    assert about(seconds) == words
