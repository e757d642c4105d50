"""`driftline compare`: says whether two lm-eval outputs differ. No server, database or model is asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.failure import EXIT_NOT_COMPARABLE, EXIT_REGRESSED, CommandError

if TYPE_CHECKING:
    from driftline.comparison import Compared, Wanted

EXIT_UNDERPOWERED = 4
"""only with --strict"""

PLACE = "lm-eval's --output_path, the model's folder in it, a results file or a samples file."


def compare(
    base: Annotated[Path, typer.Argument(metavar="BASE", help=PLACE)],
    head: Annotated[Path, typer.Argument(metavar="HEAD", help="The same of the evaluation to judge.")],
    margin: Annotated[
        float, typer.Option(help="Largest move that counts as none, a fraction of the questions.")
    ] = 0.025,
    metric_margin: Annotated[
        list[str] | None, typer.Option(metavar="METRIC=VALUE", help="The margin of one metric, in its own unit.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.")] = None,
    metric: Annotated[list[str] | None, typer.Option(help="Only this metric; may be repeated.")] = None,
    filter: Annotated[  # noqa: A002 - lm-eval's own word
        list[str] | None, typer.Option(help="Only this filter; may be repeated.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 4 if the questions are too few to tell.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="What was compared and found, and how sure that is.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for a pull request.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one page with plots and changed answers.")
    ] = None,
) -> int:
    """Say whether two lm-eval outputs differ, question by question.

    Both need --log_samples. Exit codes: 0 equivalent, improved, or too few questions to tell; 2 regressed;
    3 not comparable; 4 too few questions, with --strict; 1 bad input.

    Examples:

      driftline compare results/main results/change

      driftline compare results/main results/change --explain --html report.html

      driftline compare results/main results/change --json --strict --margin 0.01 --task gsm8k
    """
    if as_json and markdown:
        raise CommandError("--json or --markdown: one of the two goes to standard output")
    if not 0 < margin < 1:
        raise CommandError(f"--margin {margin:g}: a fraction between 0 and 1; 0.025 is two and a half points")

    from driftline.comparison import Wanted

    wanted = Wanted(
        margin=margin, metric_margins=_margins(metric_margin or ()), tasks=frozenset(task or ()),
        filters=frozenset(filter or ()), metrics=frozenset(metric or ()),
    )  # fmt: skip
    compared = _compared(base, head, wanted)
    if html is not None:
        _write_page(html, compared)
    _tell(compared, as_json=as_json, markdown=markdown, explain=explain)
    return _exit_code(compared.verdict, strict=strict)


def _compared(base: Path, head: Path, wanted: "Wanted") -> "Compared":
    from driftline.comparison import compare as compare_outputs
    from driftline.lmeval import BadOutputError, open_output

    try:
        return compare_outputs(open_output(base), open_output(head), wanted)
    except BadOutputError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename or base}: {error.strerror or error}") from error


def _tell(compared: "Compared", *, as_json: bool, markdown: bool, explain: bool) -> None:
    from driftline.report import compared_text

    if as_json:
        typer.echo(compared.report.model_dump_json(indent=2))
    elif markdown:
        from driftline.report.compared_markdown import compared_markdown

        typer.echo(compared_markdown(compared), nl=False)
    else:
        typer.echo(compared_text.summary(compared))
    if explain:
        typer.echo("\n" * (not as_json) + compared_text.explanation(compared), err=as_json)


def _write_page(path: Path, compared: "Compared") -> None:
    from driftline.report.compared_page import compared_page

    try:
        path.write_text(compared_page(compared), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--html {path}: {error.strerror or error}") from error


def _margins(given: Sequence[str]) -> dict[str, float]:
    found = {}
    for each in given:
        name, equals, value = each.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = 0.0
        if not (equals and name and 0 < found[name] < float("inf")):
            raise CommandError(f"--metric-margin {each}: give METRIC=VALUE with a positive value, as in bleu=0.5")
    return found


def _exit_code(verdict: str, *, strict: bool) -> int:
    codes = {"regressed": EXIT_REGRESSED, "not_comparable": EXIT_NOT_COMPARABLE}
    if strict:
        codes["underpowered"] = EXIT_UNDERPOWERED
    return codes.get(verdict, 0)
