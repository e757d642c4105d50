"""A run's compiled kernels as text: first what was not built and why, then what a commit changed."""

from collections import Counter
from collections.abc import Iterable, Iterator

from driftline.contracts.report import BuildView, RunView
from driftline.contracts.words import JobKind, JobState
from driftline.report import figures
from driftline.report.tables import table, text

MOST_BUILDS = 20
"""Changed kernels listed; the page has all."""

MOST_ERRORS = 5
"""Different messages told; one broken import says the same of every kernel."""


def blocks(view: RunView) -> Iterator[str]:
    """Markdown: a heading, one line a problem, and the kernels that both arms have and that differ."""
    builds, problems = view.builds, build_problems(view)
    if not builds and not problems:
        return
    changed = [each for each in builds if each.head_registers is not None and _changed(each)]
    yield f"### Build: {sum(map(_changed, builds)) or 'no'} of {len(builds)} kernels changed"
    if problems:
        yield "\n".join(f"- {text(problem)}" for problem in problems)
    if changed:
        header = ("Kernel", "Config", "Arch", "Registers", "Spills (bytes)", "Shared memory (bytes)", "Message")
        yield table(header, "lllrrrl", [_row(each) for each in changed[:MOST_BUILDS]])
    if len(changed) > MOST_BUILDS:
        yield f"… and {len(changed) - MOST_BUILDS} more on the run's page"


def build_problems(view: RunView) -> list[str]:
    """What a reader must know before any figure: builds that failed, errors by message, kernels that head lost."""
    failed = [job for job in view.jobs if job.kind is JobKind.BUILD and job.state is JobState.FAILED]
    found = [f"{job.arm.value} was not built: {job.message}" for job in failed]
    found += view.build_notes
    found += [_broken(place, builds) for place, builds in _newly_refused(view).items()]
    for arm, errors in (("head", _errors(view, "head")), ("base", _errors(view, "base"))):
        known = errors.most_common(MOST_ERRORS)
        found += [f"{_kernels(count)} not compile on {arm}: {error}" for error, count in known]
        if rest := sum(errors.values()) - sum(count for _, count in known):
            found.append(f"{_kernels(rest)} not compile on {arm}, for other reasons")
    lost = sum(_lost(each) for each in view.builds)
    if lost and not any(job.arm == "head" for job in failed):
        found.append(f"{lost} of base's kernels {'is' if lost == 1 else 'are'} not on head")
    return found


def _newly_refused(view: RunView) -> dict[str, list[BuildView]]:
    """Architecture and Triton -> the kernels that compiled there on base and do not on head."""
    found: dict[str, list[BuildView]] = {}
    for build in view.builds:
        if build.head_error and build.base_shared_memory is not None:
            place = f"{build.arch} under Triton {build.triton}" if build.triton else build.arch
            found.setdefault(place, []).append(build)
    return found


def _broken(place: str, builds: list[BuildView]) -> str:
    names = sorted({build.kernel for build in builds})
    more = f" and {len(names) - MOST_ERRORS} more" if len(names) > MOST_ERRORS else ""
    return f"no longer compiles for {place}: {', '.join(names[:MOST_ERRORS])}{more}: {builds[0].head_error}"


def _errors(view: RunView, arm: str) -> Counter[str]:
    messages: Iterable[str] = (getattr(build, f"{arm}_error") for build in view.builds)
    return Counter(message for message in messages if message)


def _kernels(count: int) -> str:
    return f"{count} kernel does" if count == 1 else f"{count} kernels do"


def _lost(build: BuildView) -> bool:
    return build.base_registers is not None and build.head_registers is None and not build.head_error


def _changed(build: BuildView) -> bool:
    base = (build.base_registers, build.base_spills, build.base_shared_memory, build.base_error)
    return base != (build.head_registers, build.head_spills, build.head_shared_memory, build.head_error)


def _row(build: BuildView) -> tuple[str, ...]:
    return (
        text(build.kernel),
        text(build.config),
        text(f"{build.arch}, Triton {build.triton}" if build.triton else build.arch),
        _pair(build.base_registers, build.head_registers),
        _pair(build.base_spills, build.head_spills),
        _pair(build.base_shared_memory, build.head_shared_memory),
        text(build.head_error or build.base_error),
    )


def _pair(base: int | None, head: int | None) -> str:
    return figures.count(base) if base == head else f"{figures.count(base)} → {figures.count(head)}"
