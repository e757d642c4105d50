"""The body of a submit request: shapes, defaults, and what is refused before any repository is looked at."""

import pytest
from driftline_service.intake.request import SubmitRequest
from pydantic import ValidationError


@pytest.mark.parametrize(
    ("repo", "local"),
    [
        ("https://github.com/me/k.git", False), ("ssh://git@h/k", False), ("git@github.com:me/k.git", False),
        ("/srv/k", True), ("file:///srv/k", True), ("relative/k", True), ("C:/k", True),
    ],
)  # fmt: skip
def test_a_repository_is_local_or_remote(repo: str, local: bool) -> None:
    assert SubmitRequest(repo=repo, head="main").local is local


@pytest.mark.parametrize(
    "fields",
    [
        {"repo": "--upload-pack=x"}, {"repo": "ext::sh -c x"}, {"repo": "a\nb"}, {"repo": ""}, {"repo": "https://me:secret@h/k"},
        {"head": "--all"},
        {"head": "a b"},
        {"head": ""}, {"base": "-x"}, {"lanes": []}, {"questions": 0}, {"margin": 2.5}, {"margin": float("nan")},
        {"unknown": 1}, {"measure_noise": True, "base": "other"}, {"name": ""},
        {"name": "a\0b"}, {"name": "a\nb"}, {"name": "a\x1b[31m"},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SubmitRequest.model_validate({"repo": "https://h/k", "head": "main"} | fields)


def test_the_default_margin_is_two_and_a_half_points() -> None:
    assert SubmitRequest(repo="https://h/k", head="main").margin == 0.025
