"""What a change can reach: operators, models, lanes, and whether the repository's own CI asks for their accuracy."""

from pydantic import Field

from driftline.contracts.base import Contract, Sha
from driftline.contracts.words import Layout


class Touched(Contract):
    """A changed source file of the kernels or of the engine's layers and models."""

    path: str
    operator: str = Field(description="the file's name without its ending, e.g. ssd_chunk_scan")
    definitions: list[str] = Field(description="functions, classes and constants whose code differs; [] if none does")
    lines: list[int] = Field(
        default_factory=list, description="where those of them that head has begin; 1 is the first"
    )
    deleted: bool = False


class AccuracyTest(Contract):
    """Where the repository's CI asks for a model's accuracy."""

    model: str = Field(description="as the file names it, e.g. ibm-granite/granite-4.0-tiny-preview")
    path: str
    line: int = Field(ge=1)
    sure: bool = Field(description="False if only the name is alike")


class AffectedModel(Contract):
    """A model whose code reaches a touched definition."""

    name: str = Field(description="the model's module, e.g. granitemoehybrid")
    architectures: list[str]
    tests: list[AccuracyTest]
    lanes: list[str] = Field(default_factory=list, description="lanes that measure this model")


class AffectedOperator(Contract):
    """A public operator of layout mamba2_varlen, and the backends on which it changed."""

    operator: str
    backends: list[str]


class LaneReach(Contract):
    """Whether a lane can see the change."""

    lane: str
    reached: bool
    why: str = ""


class ImpactView(Contract):
    """The import graph of the tree at head, followed from what changed. Nothing of the commit was run for it."""

    base: Sha
    head: Sha
    layout: Layout
    touched: list[Touched]
    models: list[AffectedModel]
    operators: list[AffectedOperator]
    lanes: list[LaneReach]
    wide: list[str] = Field(description="changed files of the engine that every model may run")
    unread: list[str] = Field(description="source files that are no Python; what they reach is unknown")
    ci_files: int = Field(ge=0, description="files of the repository's CI configuration that were read")
    ci_accuracy: list[AccuracyTest] = Field(description="accuracy tests in CI, whatever their model")
