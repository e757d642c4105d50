"""`driftline doctor`: what this machine can run, and what to install for the rest."""

import json
from dataclasses import asdict
from typing import Annotated

import typer


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Look at this machine: what is there, what it is for, and how to get what is missing.

    Exit code 1 only if `driftline serve` cannot run here.

    Example:

      driftline doctor
    """
    from driftline.cli.machine import examine

    findings = examine()
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table("part", "", "found", "what it is for", box=None)
        for finding in findings:
            word = "[green]ok[/]" if finding.ok else "[red]missing[/]" if finding.required else "[yellow]missing[/]"
            table.add_row(finding.part, word, finding.found, finding.purpose)
        console = Console()
        console.print(table)
        for finding in findings:
            if not finding.ok:
                console.print(f"{finding.part}: {finding.remedy}", markup=False, highlight=False)
    return 1 if any(finding.required and not finding.ok for finding in findings) else 0
