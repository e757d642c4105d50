"""Commands in comments, understood without GitHub."""

import pytest
from driftline_service.github.commands import Command, Misunderstood, Verb, parse
from hypothesis import given
from hypothesis import strategies as st

SHA = "a" * 40


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("/driftline run", Command(Verb.RUN)),
        ("  /driftline RUN  ", Command(Verb.RUN)),
        ("Thanks!\n/driftline run 'canary V1' \"canary V0\"\nbye", Command(Verb.RUN, lanes=("canary V1", "canary V0"))),
        ("/driftline run against release/1.2", Command(Verb.RUN, against="release/1.2")),
        ("/driftline run a b against v1^", Command(Verb.RUN, lanes=("a", "b"), against="v1^")),
        (f"/driftline approve {SHA}", Command(Verb.APPROVE, sha=SHA)),
        ("/driftline", Command(Verb.HELP)),
        ("/driftline status", Command(Verb.STATUS)),
    ],
)
def test_commands_are_understood(comment: str, expected: Command) -> None:
    assert parse(comment) == expected


@pytest.mark.parametrize(
    "comment",
    [
        "", "run", "see /driftline run", "> /driftline run", "```\n/driftline run\n```", "    /driftline run",
        "/driftliner run", "//driftline run",
    ],
)  # fmt: skip
def test_what_is_quoted_shown_or_said_by_the_way_is_no_command(comment: str) -> None:
    assert parse(comment) is None


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("/driftline run\n/driftline cancel", "2 commands"),
        ("/driftline launch", "no command `launch`"),
        ("/driftline run 'open", "left open"),
        ("/driftline run against", "followed by one"),
        ("/driftline run against a b", "followed by one"),
        ("/driftline run against --upload-pack=x", "no name of a branch"),
        ("/driftline run against ..", "no name of a branch"),
        ("/driftline approve main", "40 hexadecimal digits"),
        ("/driftline approve", "40 hexadecimal digits"),
        ("/driftline cancel everything", "takes nothing more"),
        ("/driftline run " + "x" * 600, "too long"),
        ("/driftline run \x07", "cannot be read"),
    ],
)
def test_a_wrong_command_is_told_what_is_wrong(comment: str, reason: str) -> None:
    found = parse(comment)
    assert isinstance(found, Misunderstood)
    assert reason in found.reason


@given(st.text())
def test_no_comment_breaks_the_parser(text: str) -> None:
    parse(text)
    parse("/driftline " + text)
