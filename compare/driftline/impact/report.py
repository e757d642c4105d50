"""The impact of a change: what it touches, which models, operators and lanes that reaches, and what CI asks of them."""

from collections.abc import Mapping, Sequence

from driftline.contracts.impact import AccuracyTest, AffectedModel, ImpactView
from driftline.contracts.lane import Lane
from driftline.contracts.words import Layout
from driftline.git import Kernels, Mirror
from driftline.git.sources import Blob, blobs_of, texts_of
from driftline.impact import ci, varlen, vllm
from driftline.impact.accuracy import tests_of
from driftline.impact.ci import Mention
from driftline.impact.found import Change, FoundModel, Texts


def impact_of(mirror: Mirror, base: str, head: str, kernels: Kernels, lanes: Sequence[Lane]) -> ImpactView:
    """Read both trees from the mirror and follow the imports at head. Nothing is checked out or run.

    Raises:
        GitError: a commit is not in the mirror, or its sources are too large.
    """
    changed = mirror.changed_paths(base, head)
    blobs = blobs_of(mirror, head)
    change = Change(_texts(mirror, blobs_of(mirror, base)), _texts(mirror, blobs), changed, kernels.path, lanes)
    found = vllm.impact(change) if kernels.layout is Layout.VLLM else varlen.impact(change)
    mentions = ci.accuracy_mentions(texts_of(mirror, blobs, ci.is_read))
    return ImpactView(
        base=base, head=head, layout=kernels.layout, touched=list(found.touched), operators=list(found.operators),
        models=[_model(each, mentions) for each in found.models], lanes=list(found.lanes), wide=list(found.wide),
        unread=sorted(set(found.unread)), ci_files=sum(map(ci.is_step_file, blobs)),
        ci_accuracy=[AccuracyTest(model=each.model, path=each.path, line=each.line, sure=True) for each in mentions],
    )  # fmt: skip


def _texts(mirror: Mirror, blobs: Mapping[str, Blob]) -> Texts:
    return lambda wanted: texts_of(mirror, blobs, wanted)


def _model(found: FoundModel, mentions: Sequence[Mention]) -> AffectedModel:
    return AffectedModel(
        name=found.name, architectures=list(found.architectures), lanes=list(found.lanes),
        tests=tests_of(found.name, found.examples, mentions),
    )  # fmt: skip
