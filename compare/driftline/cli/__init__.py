"""The command line, one command a file. Imports stay light: what a command needs it imports when it runs."""

import sys


def main() -> None:
    """Entry point `driftline`. A command's failure is one line and its remedy, never a traceback."""
    from driftline.cli.app import run

    sys.exit(run(sys.argv[1:]))
