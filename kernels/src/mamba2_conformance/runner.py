"""Puts every case to every backend, one after the other, and turns what happens into outcomes."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from mamba2_conformance import tolerance
from mamba2_conformance.adapters.protocol import Adapter, NotJudged
from mamba2_conformance.case import CONTRACT, OUTSIDE, Case, Outcome, Subject
from mamba2_conformance.cases.catalogue import cases_for
from mamba2_conformance.deviation import Deviation, failed, worst
from mamba2_conformance.draw import Draw
from mamba2_conformance.poison import poisoned_memory

CONFIG_CHARACTERS = 500
"""Longest configuration text of an outcome, as the worker's channel takes it."""


def plan(adapter: Adapter, backends: Sequence[str], device: str = "cpu") -> list[tuple[Case, str]]:
    """The cases of each backend, backend by backend."""
    return [
        (case, backend)
        for backend in backends
        for case in cases_for(adapter, backend)
        if asked(case, adapter, backend, device)
    ]


def asked(case: Case, adapter: Adapter, backend: str, device: str) -> bool:
    here = not case.needs_gpu or device != "cpu"
    return here and case.asks(backend) and not case.traits & adapter.lacks


def run_cases(
    adapter: Adapter,
    backends: Sequence[str],
    on_case: Callable[[Outcome], None] = lambda outcome: None,
    *,
    device: str = "cpu",
) -> Iterator[Outcome]:
    """Yield the outcome of each case on each backend, telling `on_case` first. Nothing a kernel raises escapes."""
    for case, backend in plan(adapter, backends, device):
        outcome = outcome_of(case, adapter, backend, device=device)
        on_case(outcome)
        yield outcome


def outcome_of(case: Case, adapter: Adapter, backend: str, *, device: str = "cpu") -> Outcome:
    """Run one case on one backend, with its own random numbers and memory that shows what was never written."""
    subject, case = Subject(adapter, backend, Draw(case.name, device)), replace(case, kind=case.kind_for(adapter))
    try:
        with poisoned_memory():
            deviations = case.check(subject)
    except NotJudged as error:
        return told(replace(case, kind=OUTSIDE), backend, failed("call", f"not judged: {error}"))
    except (Exception, SystemExit) as error:
        return told(case, backend, raised(error))
    return told(case, backend, *deviations)


def without_answer(case: Case, adapter: Adapter, backend: str, why: str) -> Outcome:
    """The failed outcome of a case that gave none: it ended its process, say."""
    return told(replace(case, kind=case.kind_for(adapter)), backend, failed("call", why))


def device_works(device: str) -> bool:
    """Whether the GPU still answers this process; after an illegal access it does not. A CPU always does."""
    if device == "cpu":
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def told(case: Case, backend: str, *deviations: Deviation) -> Outcome:
    """The outcome whose figures are the worst output's and whose message names every output that failed."""
    figure = worst(deviations)
    return Outcome(
        name=case.name,
        kind=case.kind,
        backend=backend,
        passed=all(one.passed for one in deviations),
        max_abs_err=figure.max_abs_err,
        max_rel_err=figure.max_rel_err,
        tolerance=figure.tolerance,
        config=case.config[:CONFIG_CHARACTERS],
        message="; ".join(one.message for one in deviations if one.message),
    )


def raised(error: BaseException) -> Deviation:
    """An error instead of an output: its text and the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    message = f"{type(error).__name__}: {error} ({frame.filename.rpartition('/')[2]}:{frame.lineno} in {frame.name})"
    return Deviation("call", None, None, tolerance.relative([None]), message)


def passed(outcomes: Sequence[Outcome]) -> bool:
    """Whether every contract case passed. Without a single one nothing was judged, so that is not a pass."""
    contract = [outcome.passed for outcome in outcomes if outcome.kind == CONTRACT]
    return bool(contract) and all(contract)
