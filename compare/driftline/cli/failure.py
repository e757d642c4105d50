"""How a command fails: one line that names the input, the remedy, and an exit code."""

EXIT_BAD_INPUT = 1
EXIT_REGRESSED = 2
EXIT_NOT_COMPARABLE = 3


class CommandError(Exception):
    """Told to the user as `driftline: MESSAGE`, and nothing else."""

    def __init__(self, message: str, *, exit_code: int = EXIT_BAD_INPUT) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ServerAwayError(CommandError):
    """A server that cannot answer just now, and says so: who waits may ask again."""
