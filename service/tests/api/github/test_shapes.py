"""What is read of a webhook stands in GitHub's own description of it, as githubkit generates it from there."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_args

import pytest
from driftline_service.github import events
from driftline_service.github.events import Part
from pydantic import BaseModel

READ: dict[str, tuple[type[Part], tuple[str, ...]]] = {
    "pull_request": (
        events.PullRequestEvent,
        ("opened", "synchronize", "reopened", "labeled", "ready_for_review", "closed", "edited", "converted_to_draft"),
    ),
    "issue_comment": (events.IssueCommentEvent, ("created", "edited")),
    "check_run": (events.CheckRunEvent, ("rerequested",)),
    "installation": (
        events.InstallationEvent, ("created", "deleted", "suspend", "unsuspend", "new_permissions_accepted"),
    ),
    "installation_repositories": (events.InstallationRepositoriesEvent, ("added", "removed")),
    "push": (events.PushEvent, ()),
}  # fmt: skip


def _described(event: str, actions: tuple[str, ...]) -> list[type[BaseModel]]:
    module: Any = import_module(f"githubkit_schemas.v2026_03_10.webhooks.{event}")
    return [module.action_types[action] for action in actions] or list(_models(module.Event))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models somewhere in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _unknown(ours: type[Part], theirs: list[type[BaseModel]], place: str) -> Iterator[str]:
    """Fields of ours that no description of the same thing has, or not every one if ours cannot do without."""
    for name, field in ours.model_fields.items():
        found = [[each for key, each in model.model_fields.items() if name in (key, each.alias)] for model in theirs]
        enough = all(found) if field.is_required() else any(found)
        if not enough and not (name == "action" and not field.is_required()):
            yield f"{place}.{name}"
        nested = [model for fields in found for each in fields for model in _models(each.annotation)]
        for own in _models(field.annotation):
            assert issubclass(own, Part)
            yield from _unknown(own, nested, f"{place}.{name}")


def _null(annotation: Any) -> bool:
    return annotation is type(None) or any(_null(part) for part in get_args(annotation))


def _needed(ours: type[Part], theirs: list[type[BaseModel]], place: str) -> Iterator[str]:
    """Fields that ours cannot do without and that GitHub may leave null, or out."""
    for name, field in ours.model_fields.items():
        found = [each for model in theirs for key, each in model.model_fields.items() if name in (key, each.alias)]
        if field.is_required() and any(_null(each.annotation) or not each.is_required() for each in found):
            yield f"{place}.{name}"
        nested = [model for each in found for model in _models(each.annotation)]
        for own in _models(field.annotation):
            yield from _needed(own, nested, f"{place}.{name}")


@pytest.mark.parametrize("event", READ)
def test_every_field_that_is_read_is_one_that_github_describes(event: str) -> None:
    ours, actions = READ[event]
    assert list(_unknown(ours, _described(event, actions), event)) == []


def test_no_event_is_read_that_is_not_compared_here() -> None:
    assert set(events._KNOWN) == set(READ)


@pytest.mark.parametrize("event", READ)
def test_nothing_is_needed_that_github_may_leave_null(event: str) -> None:
    """But the installation, which no webhook of an App is without."""
    ours, actions = READ[event]
    needed = set(_needed(ours, _described(event, actions), event))
    assert needed <= {f"{event}.installation"}
