"""The typer application: names of commands and the one place where failures become text. No command's work is here."""

import os
import sys

import typer

from driftline.cli import (
    baseline,
    bisect,
    build_kernels,
    cancel,
    changes,
    check_kernels,
    command,
    compare,
    data,
    doctor,
    history,
    impact,
    import_,
    imports,
    lanes,
    report,
    rescore,
    runs,
    serve,
    submit,
    token,
    worker,
)
from driftline.cli.failure import CommandError

HELP = """Did this commit move the model's accuracy away from main?

Start with:

  driftline doctor                      what this machine can run

  driftline serve                       start everything here, in ./.driftline

  driftline submit --repo . --head HEAD --watch      in a second terminal
"""

INTERRUPTED = 130
"""128 + SIGINT, as shells count."""

app = typer.Typer(
    help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.command("submit")(submit.submit)
app.command("runs")(runs.runs)
app.command("report")(report.report)
app.command("cancel")(cancel.cancel)
app.command("bisect")(bisect.bisect)
app.command("bisects")(bisect.bisects)
app.command("changes")(changes.changes)
app.command("compare")(compare.compare)
app.command("lanes")(lanes.lanes)
app.command("command")(command.command)
app.command("history")(history.history)
app.command("impact")(impact.impact)
app.command("import")(import_.import_)
app.command("imports")(imports.imports)
app.command("rescore")(rescore.rescore)
app.command("withdraw")(imports.withdraw)
app.add_typer(baseline.app, name="baseline")
app.add_typer(data.app, name="data")
app.add_typer(token.app, name="token")
app.command("check-kernels")(check_kernels.check_kernels)
app.command("build-kernels")(build_kernels.build_kernels)
app.command("doctor")(doctor.doctor)


def run(arguments: list[str]) -> int:
    """Run one command line; the exit code."""
    try:
        code = app(arguments, standalone_mode=False, prog_name="driftline")
    except CommandError as error:
        return _told(str(error), error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again at exit
        return 1
    except Exception as error:
        if not hasattr(error, "format_message"):  # click's and typer's usage errors have it; anything else is a bug
            raise
        return _told(f"{error.format_message().rstrip('.')}; see `driftline {' '.join(arguments[:1])} --help`", 1)
    return code if isinstance(code, int) else 0


def _told(message: str, code: int) -> int:
    sys.stderr.write(f"driftline: {message}\n")
    return code
