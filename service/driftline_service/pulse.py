"""A sign of life of a process that answers no port: a file it touches, whose age its container's health check looks at.

`python -m driftline_service.pulse FILE` is that check. It imports nothing of ours, since it runs every half minute.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

STILL_SECONDS = 120.0
"""A look at the world takes less than a second, and judging a large run some seconds: so long means that it hangs."""


def touching(file: Path | None) -> Callable[[], None]:
    """What the process calls as it goes round. A disk that takes no file shows as silence and stops nothing."""

    def touch() -> None:
        if file is not None:
            with suppress(OSError):
                file.touch()

    return touch


def main(arguments: list[str]) -> int:
    (file,) = map(Path, arguments)
    try:
        silent = time.time() - file.stat().st_mtime
    except OSError as error:
        sys.stderr.write(f"{file}: {error.strerror}\n")
        return 1
    if silent > STILL_SECONDS:
        sys.stderr.write(f"{file} was not touched for {silent:.0f} s\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
