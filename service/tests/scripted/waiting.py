"""For what happens when others get to it."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    """Whether the condition held within so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False
