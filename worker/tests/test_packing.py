"""An environment is packed in parts and put together again where no registry is. Its wheels are made here: nothing is fetched."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACK = ROOT / "requirements" / "pack.sh"
PYTHON_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def wheel(folder: Path, name: str, tag: str = "py3-none-any") -> None:
    """A wheel of one module that says where it came from; its bytes do not compress."""
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-{tag}.whl", "w") as made:
        made.writestr(f"{name}.py", f"CAME = {name!r}\nNOISE = {os.urandom(30_000).hex()!r}\n")
        made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        made.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n")
        made.writestr(f"{info}/RECORD", "")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder of wheels that stands for the registry, and lock files that ask for them."""
    folder = tmp_path / "shop"
    folder.mkdir()
    for name in ("spring_a", "spring_b", "already_there"):
        wheel(folder, name)
    (tmp_path / "good.lock").write_text("# a comment\nspring-a==1.0\nspring-b==1.0  # another\nalready-there==1.0\n")
    (tmp_path / "bad.lock").write_text("spring-a==2.0\n")
    return folder


def run(shop: Path, *words: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """No index is asked: pip sees the shop alone."""
    told = {
        "PATH": os.environ["PATH"], "HOME": str(shop), "PYTHON": sys.executable, "PYTHON_VERSION": PYTHON_VERSION,
        "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shop), "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }  # fmt: skip
    return subprocess.run(
        ["bash", *map(str, words)], env=told | environment, capture_output=True, text=True, check=False
    )


def test_what_was_packed_in_parts_is_installed_from_them(shop: Path, tmp_path: Path) -> None:
    packed = run(shop, PACK, tmp_path / "good.lock", tmp_path / "out", "20K", LEAVE_OUT="already-there")
    assert packed.returncode == 0, packed.stderr
    parts = sorted((tmp_path / "out").glob("part.*"))
    assert packed.stdout.startswith(f"2 wheels in {len(parts)} parts of at most 20K")
    assert len(parts) > 3
    assert max(part.stat().st_size for part in parts) == 20 << 10
    installed = run(tmp_path / "elsewhere", tmp_path / "out" / "install.sh", tmp_path / "venv")
    assert installed.returncode == 0, installed.stderr
    code = "import spring_a, spring_b; print(spring_a.CAME, spring_b.CAME); import already_there"
    answer = subprocess.run(
        [tmp_path / "venv" / "bin" / "python", "-c", code], capture_output=True, text=True, check=False
    )
    assert answer.stdout.split() == ["spring_a", "spring_b"]
    assert "No module named 'already_there'" in answer.stderr


def test_a_part_that_was_damaged_or_lost_on_the_way_installs_nothing(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    packed = run(shop, PACK, tmp_path / "good.lock", out, "20K", LEAVE_OUT="already-there spring-b")
    assert packed.returncode == 0, packed.stderr
    part = out / "part.001"
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "part.001" in run(shop, out / "install.sh", tmp_path / "venv").stderr
    part.unlink()
    assert "part.001" in run(shop, out / "install.sh", tmp_path / "venv").stderr
    assert not (tmp_path / "venv").exists()


def test_what_cannot_be_packed_is_named(shop: Path, tmp_path: Path) -> None:
    missing = run(shop, PACK, tmp_path / "bad.lock", tmp_path / "out")
    assert missing.returncode == 1
    assert "no wheel of spring-a==2.0" in missing.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "part.000").write_text("of an earlier packing")
    mixed = run(shop, PACK, tmp_path / "good.lock", tmp_path / "full")
    assert "is not empty" in mixed.stderr
    assert run(shop, PACK).returncode == 2


def test_the_lock_of_the_v0_era_is_what_its_environment_promises() -> None:
    """A worker refuses an environment that is not as pinned; the lock must be able to make one that is."""
    import tomllib

    environment = tomllib.loads((ROOT / "driftline.toml").read_text())["environments"]["vllm 0.10"]
    lines = (ROOT / environment["lock"]).read_text().splitlines()
    locked = dict(line.split("==") for line in lines if not line.startswith("#"))
    promised = {"vllm": environment["vllm"]} | environment["pins"]
    assert {name: locked[name.replace("_", "-")] for name in promised} == promised
    assert promised["torch"] == "2.7.1"
    assert locked["nvidia-cublas-cu12"].startswith("12.6.")
