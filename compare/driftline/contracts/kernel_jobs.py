"""What a repository's kernels are built under and tested with: read from driftline.toml, frozen into each run."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from driftline.contracts.base import Contract, Name
from driftline.contracts.lane import EngineEnvironment, InsideAssets, Version

TreePath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9._+/-]*$", max_length=300)]
"""A file or folder of the repository; checked again by git's own rules before it reaches git."""

PytestArgument = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]+$", max_length=300)]


Architecture = Literal[80, 90, 100]


class TritonRelease(Contract):
    """A release of Triton under which kernels are compiled."""

    name: Name
    version: Version
    folder: InsideAssets | None = Field(
        None, description="Where it is installed, relative to the assets root; None: the evaluation environment's own"
    )
    architectures: list[Architecture] = Field(
        default=[], max_length=3, description="For which it compiles, e.g. 90 for sm_90; empty: all that the job names"
    )


class Suite(Contract):
    """A repository's own kernel tests: which they are, what else of the tree they need, and how pytest is called."""

    paths: list[TreePath] = Field(min_length=1, max_length=20, description="Files and folders given to pytest")
    beside: list[TreePath] = Field(default=[], max_length=50, description="What else of the tree they need")
    import_from: list[TreePath] = Field(
        default=[], max_length=20, description="Folders of the tree that come first on the import path"
    )
    arguments: list[PytestArgument] = Field(default=[], max_length=50, description="What else pytest is given")
    seconds_per_test: int = Field(300, ge=1, le=3600, description="After which a test counts as hanging")
    runs_in: EngineEnvironment | None = Field(None, description="A vLLM environment; None: the evaluation environment")
    gpu_type: str | None = Field(None, description="Queue that serves them; None: any worker's")
