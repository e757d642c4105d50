"""The data folder: its lock, its privacy, its room."""

import json
from pathlib import Path

import pytest
from driftline_service.embedded.folder import DataFolder, FolderLock, ServerFile, write_private
from driftline_service.embedded.refusal import CannotServe


def test_folders_are_private(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "a" / "b")
    folder.prepare()
    for made in (folder.root, folder.broker, folder.worker, folder.logs):
        assert made.stat().st_mode & 0o777 == 0o700


def test_a_nearly_full_disk_is_refused_with_figures(tmp_path: Path) -> None:
    with pytest.raises(CannotServe, match=r"MB free on its disk, 1099511627776 MB needed; free some or choose another"):
        DataFolder(tmp_path, smallest_free_bytes=1 << 60).prepare()


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    first = FolderLock(folder).take()
    first.say("http://127.0.0.1:1")
    with pytest.raises(CannotServe, match=r"in use by pid \d+ at http://127\.0\.0\.1:1; use that server"):
        FolderLock(folder).take()
    first.release()
    FolderLock(folder).take().release()


def test_files_are_private_and_whole(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    server = ServerFile(url="u", pid=1, token_file="t", data_dir="d")
    folder.write_server_file(server)
    write_private(folder.server_file, json.dumps({"again": 1}))
    assert json.loads(folder.server_file.read_text()) == {"again": 1}
    assert folder.server_file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["server.json"]
    folder.remove_server_file()
    folder.remove_server_file()
