"""What `make run` must have found, checked on its report: python example/expectations.py out/report.json

The one place that knows what the example's patches hold. It is used by .ci/run, never by Driftline.
"""

import json
import sys
from pathlib import Path
from typing import Any

CARRIED_STATE = "carried_state/"


def problems(report: dict[str, Any]) -> list[str]:
    """What is not as it must be, in words."""
    runs = {run["name"]: run for run in report["runs"]}
    refactor, bug = runs["refactor"], runs["initial-state-decay"]
    found = [
        f"refactor, {lane['name']}: {lane['verdict']}, expected equivalent"
        for lane in refactor["lanes"]
        if lane["verdict"] != "equivalent"
    ]
    if refactor["kernel_check"]["result"] != "passed":
        found.append(f"refactor: kernel check {refactor['kernel_check']['result']}, expected passed")
    if bug["kernel_check"]["result"] != "failed":
        found.append(f"initial-state-decay: kernel check {bug['kernel_check']['result']}, expected failed")
    strays = [name for name in bug["kernel_check"]["failed_cases"] if not name.startswith(CARRIED_STATE)]
    if strays or not bug["kernel_check"]["failed_cases"]:
        found.append(f"initial-state-decay: failed cases outside {CARRIED_STATE}: {strays}, or none at all")
    for mode, expected in (("V0", "equivalent"), ("V1", "regressed")):
        verdicts = {lane["verdict"] for lane in bug["lanes"] if lane["mode"] == mode}
        if verdicts != {expected}:
            found.append(f"initial-state-decay, {mode}: {sorted(verdicts)}, expected {expected}")
    return found


def main() -> None:
    found = problems(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    if found:
        raise SystemExit("\n".join(found))
    print("make run found what the example holds")


if __name__ == "__main__":
    main()
