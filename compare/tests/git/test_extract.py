"""Unpacking one folder of an untrusted tree."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from driftline.git import GitError, Mirror
from driftline.git.archive import unpack

Commit = Callable[..., str]


def test_only_the_folder_arrives_under_its_last_name(mirror: Mirror, commit: Commit, tmp_path: Path) -> None:
    sha = commit(
        {"src/pkg/__init__.py": "x = 1\n", "src/pkg/sub/m.py": "y\n", "src/other.py": "z", "conftest.py": "no"}
    )
    mirror.fetch()
    folder = mirror.extract(sha, "src/pkg", tmp_path / "import")
    assert folder == tmp_path / "import" / "pkg"
    files = sorted(str(path.relative_to(tmp_path / "import")) for path in (tmp_path / "import").rglob("*"))
    assert files == ["pkg", "pkg/__init__.py", "pkg/sub", "pkg/sub/m.py"]
    assert (folder / "__init__.py").read_text() == "x = 1\n"


def test_attributes_of_the_tree_change_no_byte(mirror: Mirror, commit: Commit, tmp_path: Path) -> None:
    """export-ignore would hide a file from the check, export-subst and eol would change one, under the same tree id."""
    attributes = "hidden.py export-ignore\nsubst.py export-subst\n*.py text eol=crlf ident\n"
    files = {"hidden.py": "h = 1\n", "subst.py": "v = '$Format:%H$'\n", "id.py": "# $Id$\n"}
    sha = commit({f"pkg/{name}": text for name, text in files.items()} | {"pkg/.gitattributes": attributes})
    mirror.fetch()
    folder = mirror.extract(sha, "pkg", tmp_path / "import")
    for name, text in files.items():
        assert (folder / name).read_bytes() == text.encode()


def test_a_link_that_leaves_is_refused(mirror: Mirror, commit: Commit, repository: Path, tmp_path: Path) -> None:
    (repository / "pkg").mkdir()
    (repository / "pkg" / "secrets").symlink_to("/etc")
    sha = commit({"pkg/a.py": ""})
    mirror.fetch()
    with pytest.raises(GitError) as caught:
        mirror.extract(sha, "pkg", tmp_path / "import")
    assert caught.value.reason == "unsafe_tree"
    assert "secrets" in str(caught.value)


def test_a_link_that_stays_is_kept(mirror: Mirror, commit: Commit, repository: Path, tmp_path: Path) -> None:
    (repository / "pkg").mkdir()
    (repository / "pkg" / "alias.py").symlink_to("a.py")
    sha = commit({"pkg/a.py": "a = 1\n"})
    mirror.fetch()
    assert (mirror.extract(sha, "pkg", tmp_path / "import") / "alias.py").read_text() == "a = 1\n"


def test_a_commit_without_the_folder(mirror: Mirror, commit: Commit, tmp_path: Path) -> None:
    sha = commit({"a": "1"})
    mirror.fetch()
    with pytest.raises(GitError) as caught:
        mirror.extract(sha, "src/pkg", tmp_path / "import")
    assert caught.value.reason == "no_kernels"


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    "members",
    [
        [member("../evil")], [member("/etc/evil")], [member("a/../../evil")], [member("dev", tarfile.CHRTYPE)],
        [member("fifo", tarfile.FIFOTYPE)], [member("hard", tarfile.LNKTYPE, "/etc/passwd")],
        [member("a"), member("a")],
        [member("up", tarfile.SYMTYPE, "../../x")], [member("l", tarfile.SYMTYPE, "d"), member("l/x")],
    ],
)  # fmt: skip
def test_archives_no_git_would_write(members: list[tarfile.TarInfo], tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for info in members:
            archive.addfile(info, io.BytesIO())
    with pytest.raises(GitError) as caught:
        unpack(data.getvalue(), tmp_path / "inside" / "deeper")
    assert caught.value.reason == "unsafe_tree"
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
