"""What people type, checked before git sees it."""

import pytest
from driftline.git import GitError
from driftline.git.names import checked_path, checked_ref, checked_sha, parse_url
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "text", ["main", "release/1.2", "v1.0^", "main~3", "pull/12/head", "HEAD", "0123abc", "a" * 40, "feature#1", "a@b"]
)
def test_ordinary_refs_pass(text: str) -> None:
    assert checked_ref(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "--upload-pack=touch x", "-x", "a..b", "a...b", "main@{1}", "@{u}", "@", "a b", "a\0b", "a\nb", "a\x1bb",
        "a:b", "a*", "[a]", "a\\b", "main^{tree}", "main^{/fix}", ":/fix", "/main", "main/", "a//b", "x.lock", "a/.b",
        "a/-b", "a?b", "ä", "a" * 201, "^main", "~1", "main;ls", "$(ls)", "`ls`", "a|b",
    ],
)  # fmt: skip
def test_hostile_refs_are_refused_with_a_reason(text: str) -> None:
    with pytest.raises(GitError) as caught:
        checked_ref(text)
    assert caught.value.reason == "bad_ref"


@given(st.text())
def test_no_accepted_ref_can_be_an_option_a_range_or_hold_white_space(text: str) -> None:
    try:
        ref = checked_ref(text)
    except GitError:
        return
    assert not ref.startswith("-")
    assert ".." not in ref
    assert ref.isascii()
    assert ref.isprintable()
    assert " " not in ref


@pytest.mark.parametrize("text", ["main", "A" * 40, "a" * 39, "a" * 41, "a" * 40 + "\n"])
def test_only_full_lower_case_shas_pass(text: str) -> None:
    with pytest.raises(GitError):
        checked_sha(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/a/b.git", "http://127.0.0.1:8080/x", "ssh://git@host/x", "git+ssh://host/x",
        "git@github.com:a/b.git",
    ],
)  # fmt: skip
def test_remote_urls_pass(text: str) -> None:
    assert not parse_url(text).local


@pytest.mark.parametrize(
    "text",
    [
        "", "--upload-pack=x", "-oProxyCommand=x", "ext::sh -c x", "fd::17", "git://host/x", "ftp://host/x",
        "https://", "https:///x", "ssh://-oProxyCommand=x/y", "https://a\nb/x", "https://a/\0", "javascript://x",
        "file://other-host/x", "git@host:-x", "https://[::1/x", "a" * 1001,
    ],
)  # fmt: skip
def test_hostile_urls_are_refused_with_a_reason(text: str) -> None:
    with pytest.raises(GitError) as caught:
        parse_url(text)
    assert caught.value.reason == "bad_url"


def test_a_password_is_never_shown() -> None:
    url = parse_url("https://me:secret@host.example/x.git")
    assert url.shown == "https://host.example/x.git"
    assert "secret" in url.address


@pytest.mark.parametrize("text", ["", "/etc", "a/../b", "..", "a\0b", "a:b"])
def test_paths_stay_inside_the_tree(text: str) -> None:
    with pytest.raises(GitError):
        checked_path(text)
