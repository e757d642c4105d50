"""What a caller may ask for: the body of POST /api/v1/runs. Shapes only; no repository is looked at here."""

import re
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from driftline.contracts.base import Contract, Name
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

DEFAULT_MARGIN = 0.025
"""Fraction of questions: a drop within 2.5 points counts as none."""

MOST_REPEATS = 20
"""Each costs as much as the run itself."""

REMOTE_SCHEMES = frozenset({"https", "http", "ssh", "git"})
_SCP_LIKE = re.compile(r"^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^:].*$")

EXAMPLE: dict[str, Any] = {
    "repo": "https://github.com/me/kernels.git",
    "head": "my-branch",
    "base": "main",
    "lanes": ["canary V0", "canary V1"],
    "questions": 300,
    "margin": 0.025,
    "name": "refactor the scan",
}

Revision = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./@^~+-]{0,199}$")]
"""A SHA, branch or tag as git spells them; never an option, never white space."""

OneLine = StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$")
"""Words of a caller that stand in a table's cell. PostgreSQL holds no NUL, and a line break would tear the table."""


def _plain_repository(repo: str) -> str:
    if repo.startswith("-") or any(not character.isprintable() for character in repo) or "::" in repo:
        raise ValueError("must be a plain URL or path of a git repository")
    if "://" in repo and "@" in urlsplit(repo).netloc and ":" in urlsplit(repo).netloc.rpartition("@")[0]:
        raise ValueError("must hold no password: runs and reports show the URL")
    return repo


RepositoryUrl = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1000),
    AfterValidator(_plain_repository),
    Field(description="URL of a git repository"),
]
"""What every request takes for a repository, so that none lets in what another refuses."""


class SubmitRequest(Contract):
    """One request: is head as accurate as base?"""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    repo: RepositoryUrl
    head: Revision = Field(description="The commit to judge")
    base: Revision | None = Field(
        default=None, description="Default: where head left the main branch; on it, head's parent"
    )
    target: Revision | None = Field(
        default=None, description="The branch that head is to be merged into: base is where head left it. Default: main"
    )
    lanes: list[Name] | None = Field(
        default=None, min_length=1, max_length=32, description="Default: those marked default"
    )
    questions: int | None = Field(
        default=None, ge=1, description="Ask fewer questions than the lanes do, of the same order"
    )
    margin: float = Field(
        default=DEFAULT_MARGIN, gt=0, le=1, description="Largest drop of exact_match that counts as none, a fraction"
    )
    name: Annotated[str, StringConstraints(max_length=200), OneLine] | None = None
    early_stopping: bool | None = Field(
        default=None,
        description="May lanes of engine hf stop as soon as their pairs decide? Default: as each lane is configured",
    )
    confirm: bool | None = Field(
        default=None,
        description="Is a first hit measured once more, by a fresh pair? Default: as each lane is configured",
    )
    repeats: int = Field(
        default=0,
        ge=0,
        le=MOST_REPEATS,
        description="Pairs of each lane to evaluate beyond the first, for its noise floor",
    )
    measure_noise: bool = Field(default=False, description="base = head, both evaluated: an A/A run")

    @model_validator(mode="after")
    def _one_way_to_name_the_base(self) -> Self:
        if self.target is not None and (self.base is not None or self.measure_noise):
            raise ValueError("target chooses the base itself; leave out base, and measure_noise")
        return self

    @model_validator(mode="after")
    def _noise_needs_one_commit(self) -> Self:
        if self.measure_noise and self.base not in (None, self.head):
            raise ValueError("measure_noise compares head with itself; leave base out")
        return self

    @property
    def local(self) -> bool:
        """Whether the repository is a folder on the service's disk."""
        scheme = urlsplit(self.repo).scheme
        return scheme == "file" or (scheme not in REMOTE_SCHEMES and _SCP_LIKE.match(self.repo) is None)
