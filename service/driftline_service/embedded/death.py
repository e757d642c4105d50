"""How a child is made to die with its parent. Linux tells it by a signal; elsewhere the next start clears up."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
"""prctl(2)"""


def dies_with_parent(signal_number: signal.Signals) -> Callable[[], None]:
    """A function to be called in the child between fork and exec.

    The signal comes when the *thread* that forked ends, so that children are started from the main thread only.
    """
    parent = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

    def ask_kernel() -> None:
        if libc is None:
            return
        libc.prctl(PR_SET_PDEATHSIG, int(signal_number))
        if os.getppid() != parent:  # the parent died before the kernel was asked
            os._exit(1)

    return ask_kernel
