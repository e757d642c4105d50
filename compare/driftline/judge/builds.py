"""Both arms' compiled kernels side by side."""

from driftline.contracts.channel import KernelBuild
from driftline.contracts.report import BuildView
from driftline.contracts.words import Arm
from driftline.evidence import RunEvidence

Key = tuple[str, str, str, str]


def build_views(evidence: RunEvidence) -> list[BuildView]:
    """One row per kernel, configuration, architecture and release of Triton that either arm has."""
    base, head = (_by_key(evidence, arm) for arm in (Arm.BASE, Arm.HEAD))
    return [_view(key, base.get(key), head.get(key)) for key in sorted(base.keys() | head.keys())]


def _by_key(evidence: RunEvidence, arm: Arm) -> dict[Key, KernelBuild]:
    built = evidence.builds.get(arm)
    return (
        {(each.kernel, each.config, each.arch, each.triton): each for each in built} if isinstance(built, tuple) else {}
    )


def _view(key: Key, base: KernelBuild | None, head: KernelBuild | None) -> BuildView:
    kernel, config, arch, triton = key
    return BuildView(
        kernel=kernel, config=config, arch=arch, triton=triton,
        base_registers=base.registers if base else None, head_registers=head.registers if head else None,
        base_spills=base.spills if base else None, head_spills=head.spills if head else None,
        base_shared_memory=base.shared_memory if base else None, head_shared_memory=head.shared_memory if head else None,
        base_error=base.error if base else "", head_error=head.error if head else "",
    )  # fmt: skip
