"""The command line, one command a file. Imports stay light: what a command needs it imports when it runs."""

import io
import sys


def main() -> None:
    """Entry point `driftline`. A command's failure is one line and its remedy, never a traceback."""
    from driftline.cli.app import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file's name that is no text is told by its escapes
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))
