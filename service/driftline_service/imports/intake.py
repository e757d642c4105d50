"""An uploaded archive becomes one import: received to disk, unpacked, understood, stored. The order of things only."""

import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from driftline.contracts.imports import ImportRequest
from fastapi.concurrency import run_in_threadpool

from driftline_service.api.context import Context
from driftline_service.database import audit
from driftline_service.imports import archive
from driftline_service.imports.evaluation_files import asked_lane, understand
from driftline_service.imports.storing import Stored, store

LEFT_BEHIND_SECONDS = 3600.0
"""No import takes as long: an older folder is that of a process that was killed."""


async def take_in(chunks: AsyncIterator[bytes], wanted: ImportRequest, found: Context, *, actor: str) -> Stored:
    """Receive, unpack, understand and store, in one transaction at the end. `actor` is whose token it was.

    Raises:
        Refusal: naming what is wrong with the request, the archive or the evaluation.
    """
    settings, lane = found.settings, asked_lane(wanted, found.lanes)
    incoming = settings.data_dir / "incoming"
    incoming.mkdir(parents=True, exist_ok=True)
    _sweep(incoming)
    with TemporaryFile(dir=incoming) as upload, TemporaryDirectory(dir=incoming) as folder:
        await archive.receive(chunks, upload, limit=settings.max_import_bytes)

        def taken_in() -> Stored:
            archive.unpack(upload, Path(folder), limit=settings.max_import_unpacked_bytes)
            new = understand(Path(folder), wanted, lane)
            with found.sessions.begin() as session:
                stored = store(session, new)
                if stored.created:
                    audit.note(session, actor, "import_reported", stored.import_id, reported_by=wanted.reported_by)
            return stored

        return await run_in_threadpool(taken_in)


def _sweep(incoming: Path) -> None:
    for left in incoming.iterdir():
        try:
            if time.time() - left.stat().st_mtime > LEFT_BEHIND_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        except FileNotFoundError:
            continue  # another import ended meanwhile
