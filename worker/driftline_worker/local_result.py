"""What a local check or build found: a sink that keeps lines, and the JSON of design section 9."""

from collections.abc import Callable

from driftline.contracts.channel import Case, CheckSummary, KernelBuild, Progress
from driftline.contracts.jobs import BuildSpec, CheckSpec
from driftline.contracts.words import CaseKind
from driftline.contracts.worker_api import ReportedLine
from rich.table import Table
from rich.text import Text


class LocalResult:
    """A sink that never lets a child wait."""

    def __init__(self, spec: CheckSpec | BuildSpec, show: Callable[[str], None]) -> None:
        self._spec = spec
        self._show = show
        self._summary: CheckSummary | None = None
        self._cases: list[Case] = []
        self._builds: list[KernelBuild] = []

    def put(self, line: ReportedLine, size: int) -> None:
        match line:
            case Progress():
                self._show(f"{line.phase} {line.done} of {line.total}")
            case CheckSummary():
                self._summary = line
            case Case():
                self._cases.append(line)
            case KernelBuild():
                self._builds.append(line)

    def full(self) -> bool:
        return False

    @property
    def passed(self) -> bool:
        """Only contract cases decide a check; nothing checked or built has not passed."""
        if isinstance(self._spec, BuildSpec):
            return bool(self._builds) and all(build.compiled for build in self._builds)
        decisive = [case.passed for case in self._cases if case.kind is CaseKind.CONTRACT]
        return bool(decisive) and all(decisive)

    def values(self) -> dict[str, object]:
        source = self._spec.source
        found: dict[str, object] = {"commit": source.sha, "layout": source.layout.value}
        if isinstance(self._spec, BuildSpec):
            builds = [build.model_dump(mode="json", exclude={"type"}) for build in self._builds]
            return found | {"passed": self.passed, "kernels": builds}
        summary = self._summary
        return found | {
            "era": summary.era if summary else None,
            "device": summary.device if summary else None,
            "passed": self.passed,
            "cases": [case.model_dump(mode="json", exclude={"type"}) for case in self._cases],
        }

    def table(self) -> Table:
        return self._build_table() if isinstance(self._spec, BuildSpec) else self._case_table()

    def _case_table(self) -> Table:
        table = Table("case", "backend", "kind", "error", "tolerance", "", title=f"kernel check {self._title}")
        for case in self._cases:
            error = "-" if case.max_abs_err is None else f"{case.max_abs_err:.2e}"
            verdict = Text("passed", "green") if case.passed else Text("failed", "red")
            name = Text(case.name if case.passed or not case.message else f"{case.name}\n{case.message[:300]}")
            table.add_row(name, case.backend, case.kind.value, error, f"{case.tolerance:.0e}", verdict)
        return table

    def _build_table(self) -> Table:
        table = Table("kernel", "config", "arch", "registers", "spills", "shared", title=f"build {self._title}")
        for build in self._builds:
            sizes = [
                str(size) if size is not None else "-" for size in (build.registers, build.spills, build.shared_memory)
            ]
            kernel = Text(build.kernel if build.compiled else f"{build.kernel}\n{build.error[:300]}")
            table.add_row(kernel, Text(build.config), build.arch, *sizes, style=None if build.compiled else "red")
        return table

    @property
    def _title(self) -> str:
        return f"{self._spec.source.sha[:12]} ({self._spec.source.layout.value})"
