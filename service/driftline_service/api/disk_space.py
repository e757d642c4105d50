"""Whether a full disk is why the database is away. Only the embedded one shares its disk with this process."""

import shutil

from driftline_service.settings import Settings

NEEDED_BYTES = 64 << 20
"""PostgreSQL writes its log in files of 16 MB and cannot start without room for one."""


def shortage(settings: Settings | None) -> str:
    """A sentence for the reader, or nothing if there is room or the database is elsewhere."""
    if settings is None or not settings.embedded:
        return ""
    free = shutil.disk_usage(settings.data_dir).free
    if free >= NEEDED_BYTES:
        return ""
    return f"{free >> 20} MB are left on the disk of {settings.data_dir}: free some, and it comes back by itself"
