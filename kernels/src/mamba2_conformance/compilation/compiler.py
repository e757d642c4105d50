"""Compiles recorded launches for architectures without their GPUs, one report each."""

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass

from triton import knobs

from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.compilation.recorder import Launch, recorded
from mamba2_conformance.compilation.report import CONFIG_CHARACTERS, KernelBuild, resources
from mamba2_conformance.compilation.scenario import Scenario, scenarios
from mamba2_conformance.compilation.target import targeting


@dataclass(frozen=True, eq=False)
class Planned:
    """One launch to compile, or the error that an operator raised before it launched anything."""

    kernel: str
    config: str
    launch: Launch | None
    error: str = ""


def plan(adapter: Adapter) -> list[Planned]:
    """The launches of every scenario. An operator that raises is one entry with its error, not a crash."""
    return [planned for scenario in scenarios() for planned in launches_of(scenario, adapter)]


def launches_of(scenario: Scenario, adapter: Adapter) -> list[Planned]:
    failure: list[Planned] = []
    with recorded() as launches:
        try:
            with adapter.every_tile() if scenario.every_tile else nullcontext():
                scenario.call(adapter)
        except (Exception, SystemExit) as error:
            message = f"{type(error).__name__}: {error}"
            failure = [Planned("before any kernel", scenario.config, None, message)]
    seen: Counter[str] = Counter()
    planned = []
    for launch in launches:
        tile = f", tile {launch.tile}" if launch.tile else ""
        seen[launch.name + tile] += 1
        nth = f", call {seen[launch.name + tile]}" if seen[launch.name + tile] > 1 else ""
        planned.append(Planned(launch.name, (scenario.config + tile + nth)[:CONFIG_CHARACTERS], launch))
    return planned + failure


def pieces(planned: Sequence[Planned], architectures: Sequence[int]) -> list[tuple[Planned, int]]:
    """Each launch for each architecture, e.g. 90 for sm_90, in the order given."""
    return [(one, architecture) for one in planned for architecture in architectures]


def compiling() -> Callable[[Planned, int], KernelBuild]:
    """What compiles one piece after the other; it remembers what ptxas printed of each binary."""
    knobs.nvidia.dump_ptxas_log = True
    knobs.compilation.always_compile = True  # a binary cached on disk would come without ptxas's figures
    logs: dict[int, str] = {}
    return lambda planned, architecture: build_of(planned, architecture, logs)


def compiled(planned: Sequence[Planned], architectures: Sequence[int]) -> Iterator[KernelBuild]:
    """The reports of all pieces."""
    compile_one = compiling()
    for piece in pieces(planned, architectures):
        yield compile_one(*piece)


def refused(planned: Planned, architecture: int, error: str) -> KernelBuild:
    """The report of a kernel that gave no binary."""
    return KernelBuild(planned.kernel, planned.config, f"sm_{architecture}", compiled=False, error=error)


def build_of(planned: Planned, architecture: int, logs: dict[int, str]) -> KernelBuild:
    """The report of one compilation; whatever the compiler raises is its error text.

    `logs` keeps what ptxas printed for each binary: a second call with the same specialisation gets the same binary
    from Triton's memory, and prints nothing.
    """
    arch, launch = f"sm_{architecture}", planned.launch
    if launch is None:
        return refused(planned, architecture, planned.error)
    printed = io.StringIO()
    try:
        with targeting(architecture), redirect_stdout(printed), redirect_stderr(printed):
            kernel = launch.kernel.run(*launch.arguments, grid=(1, 1, 1), warmup=True, **launch.options)
    except (Exception, SystemExit) as error:
        return refused(planned, architecture, f"{type(error).__name__}: {error}")
    registers, spills = resources(logs.setdefault(id(kernel), printed.getvalue()))
    return KernelBuild(
        planned.kernel,
        planned.config,
        arch,
        compiled=True,
        registers=registers,
        spills=spills,
        shared_memory=int(kernel.metadata.shared),
    )
