"""`python -m driftline_service.embedded`: the supervisor's process. Exit 0 after a stop, 1 if it cannot serve."""

import sys

from driftline_service.embedded.options import parse
from driftline_service.embedded.refusal import CannotServe
from driftline_service.embedded.supervisor import Supervisor


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> int:
    try:
        Supervisor(parse(sys.argv[1:]), _say).run()
    except CannotServe as refusal:
        _say(f"driftline: {refusal}")
        return 1
    except OSError as error:
        place = error.filename or "the data folder"
        _say(f"driftline: {place}: {error.strerror}; free space or choose another --data-dir")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
