"""An uploaded archive becomes files under names of our own, within caps, or is refused by name."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from driftline_service.imports.archive import MOST_FILES, unpack
from driftline_service.intake.refusal import Refusal

RESULTS = "results_2026-12-02T05-30-00.json"
SAMPLES = "samples_gsm8k_2026-12-02T05-30-00.jsonl"


def archive(*members: tuple[str, bytes], mode: str = "w") -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    made.seek(0)
    return made


def special(kind: bytes, target: str = "") -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        member = tarfile.TarInfo(RESULTS)
        member.type, member.linkname = kind, target
        tar.addfile(member)
    made.seek(0)
    return made


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_files_are_unpacked_whatever_compresses_them(tmp_path: Path, mode: str) -> None:
    members = ((f"model/{RESULTS}", b"{}"), (f"model/{SAMPLES}.gz", gzip.compress(b"line\n")))
    unpack(archive(*members, mode=mode), tmp_path, limit=100)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {RESULTS: b"{}", SAMPLES: b"line\n"}


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/cron.d/x", "run.sh", ".results.json", "a/../b.py", "x" * 300]
)
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refusal) as refused:
        unpack(archive((RESULTS, b"{}"), (name, b"x")), tmp_path, limit=100)
    assert refused.value.reason == "unexpected_member"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [RESULTS]


def test_a_path_is_only_a_name(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    unpack(archive((f"../{RESULTS}", b"{}")), tmp_path / "in", limit=100)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")] == [f"in/{RESULTS}"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        unpack(special(kind, "/etc/passwd"), tmp_path, limit=100)
    assert refused.value.reason == "unexpected_member"
    assert list(tmp_path.iterdir()) == []


def test_the_caps_hold_for_what_is_unpacked(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    with pytest.raises(Refusal) as refused:
        unpack(archive((f"{SAMPLES}.gz", bomb), mode="w:gz"), tmp_path, limit=1_000_000)
    assert (refused.value.reason, refused.value.status) == ("archive_too_large", 413)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1_000_000
    many = [(f"results_{number}.json", b"") for number in range(MOST_FILES + 1)]
    with pytest.raises(Refusal) as refused:
        unpack(archive(*many), tmp_path, limit=100)
    assert refused.value.reason == "too_many_files"


def test_a_header_cannot_fill_memory(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo(RESULTS)
        member.pax_headers = {"comment": "x" * 100_000}
        tar.addfile(member)
    made.seek(0)
    with pytest.raises(Refusal, match="a header of 10") as refused:
        unpack(made, tmp_path, limit=100)
    assert refused.value.reason == "bad_archive"


def test_one_name_comes_once(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="twice"):
        unpack(archive((f"a/{RESULTS}", b"{}"), (f"b/{RESULTS}", b"{}")), tmp_path, limit=100)


@pytest.mark.parametrize("spoilt", ["text", "cut", "cut gzip", "cut member", "bad member"])
def test_what_is_no_whole_archive_is_refused(tmp_path: Path, spoilt: str) -> None:
    body = {
        "text": io.BytesIO(b"hello " * 200),
        "cut": io.BytesIO(archive((RESULTS, b"x" * 5000)).getvalue()[:3000]),
        "cut gzip": io.BytesIO(archive((RESULTS, bytes(range(256)) * 80), mode="w:gz").getvalue()[:200]),
        "cut member": archive((f"{SAMPLES}.gz", gzip.compress(bytes(range(256)) * 80)[:100])),
        "bad member": archive((f"{SAMPLES}.gz", b"not gzip at all")),
    }[spoilt]
    with pytest.raises(Refusal) as refused:
        unpack(body, tmp_path, limit=1_000_000)
    assert refused.value.reason == "bad_archive"
    assert "tar c results_*.json" in str(refused.value)
