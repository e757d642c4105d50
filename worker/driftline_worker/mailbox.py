"""Celery's filesystem transport, made safe for two processes: a message is taken by one rename, once it is whole.

kombu's own takes a file that its writer has just created and not yet filled, and moves it to another disk by copying.
"""

import json
import os
import time
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem

FOLDER = "filesystem://"

TORN_SECONDS = 60.0
"""A writer fills its file within milliseconds; the service has sent another message long before this."""


class Channel(filesystem.Channel):
    """Reads as described above; writes as kombu does."""

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """The oldest whole message of a queue. Raises queue.Empty if there is none."""
        taken = Path(self.transport_options["processed_folder"])
        for name in sorted(os.listdir(self.data_folder_in)):  # noqa: PTH208 - polled many times a second
            path = Path(self.data_folder_in) / name
            if name.partition(".")[2] != f"{queue}.msg" or not _whole(path):
                continue
            mine = taken / name
            try:
                path.rename(mine)
                message = json.loads(mine.read_text(encoding="utf-8"))
            except FileNotFoundError:  # another worker was faster
                continue
            except ValueError:  # torn by a full disk: the service sends another
                mine.unlink()
                continue
            mine.unlink()
            return message
        raise Empty


class Transport(filesystem.Transport):
    Channel = Channel


def options(broker_url: str) -> dict[str, Any]:
    """Transport options for `filesystem:///absolute/folder`: the layout that the service writes to.

    Raises:
        ValueError: if the URL names no absolute folder.
    """
    folder = Path(broker_url.removeprefix(FOLDER))
    if not folder.is_absolute():
        raise ValueError(f"broker URL {broker_url!r} names no absolute folder; write filesystem:///absolute/folder")
    messages, control, taken = folder / "messages", folder / "control", folder / "taken"
    for place in (messages, control, taken):
        place.mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(messages), "data_folder_out": str(messages), "control_folder": str(control),
        "processed_folder": str(taken), "store_processed": True,
    }  # fmt: skip


def _whole(path: Path) -> bool:
    """kombu writes a message in one go: it is empty or complete. One that stays empty was written to a full disk."""
    try:
        found = path.stat()
        if found.st_size == 0 and time.time() - found.st_mtime > TORN_SECONDS:
            path.unlink()
        return found.st_size > 0
    except FileNotFoundError:
        return False
