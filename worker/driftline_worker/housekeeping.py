"""Takes away what nobody on this worker needs: scratch folders of killed workers, mirrors and trees of vLLM unused for long or
too large.

Kernels are built, and engines keep their caches, in the scratch folder of their job, which goes with it; environments and the
hub's cache of models are the host's, and nothing here touches them.
"""

import threading
import time

import structlog
from driftline.git.mirror_cache import remove_unused

from driftline_worker import scratch
from driftline_worker.engine_cache import clean_engines
from driftline_worker.settings import WorkerSettings

DAY_SECONDS = 86400.0

_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("driftline.worker")


def clean(settings: WorkerSettings, now: float) -> None:
    """One pass at `now`, in seconds since 1970. What a running job uses is locked by it, and stays."""
    scratch.remove_leftovers(settings.scratch)
    since = now - settings.cache_days * DAY_SECONDS
    if settings.engine_bytes:
        for tree in clean_engines(settings.engines, most_bytes=settings.engine_bytes, now=now, unused_since=since):
            _log.info("engine removed", folder=tree.folder.name, bytes=tree.size)
    if settings.cache_bytes == 0:
        return
    for mirror in remove_unused(settings.mirrors, most_bytes=settings.cache_bytes, unused_since=since):
        _log.info(
            "mirror removed",
            folder=mirror.folder.name,
            bytes=mirror.size,
            unused_days=(now - mirror.used_at) / DAY_SECONDS,
        )


def keep_clean(settings: WorkerSettings, stop: threading.Event) -> threading.Thread:
    """Clean at once and every `clean_seconds` until `stop`, beside the jobs. A disk that fails is tried again later."""

    def run() -> None:
        while not stop.is_set():
            try:
                clean(settings, time.time())
            except OSError as error:
                _log.warning("clean-up failed", error=str(error))
            stop.wait(settings.clean_seconds)

    thread = threading.Thread(target=run, name="housekeeping", daemon=True)
    thread.start()
    return thread
