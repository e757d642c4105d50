"""Unpacks a tar archive of an untrusted tree: regular files, folders, and links that stay inside. Nothing else."""

import io
import tarfile
from pathlib import Path, PurePosixPath

from driftline.git.errors import GitError


def unpack(data: bytes, destination: Path) -> None:
    """Write the archive's files below `destination`, which must not exist yet.

    Links are made last, so that no file is written through one.

    Raises:
        GitError: unsafe_tree.
    """
    destination.mkdir(parents=True)
    links: list[tuple[Path, str]] = []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            target = destination / _inside(member.name)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif member.isreg():
                _write(archive, member, target)
            elif member.issym():
                links.append((target, _link_inside(member)))
            else:
                raise GitError(
                    "unsafe_tree", f"{member.name!r} is no file, folder or link; take it out of the kernels' folder"
                )
    for target, text in links:
        if target.exists() or target.is_symlink():
            raise GitError("unsafe_tree", f"{target.name!r} occurs twice in one folder; repair the tree")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(text)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = archive.extractfile(member)
    if content is None or target.exists():
        raise GitError("unsafe_tree", f"{member.name!r} occurs twice; repair the tree")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.read())
    target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise GitError("unsafe_tree", f"{name!r} leaves its folder; repair the tree")
    return path


def _link_inside(member: tarfile.TarInfo) -> str:
    text = member.linkname
    if PurePosixPath(text).is_absolute() or ".." in PurePosixPath(text).parts:
        raise GitError(
            "unsafe_tree", f"link {member.name!r} points to {text!r}, out of its folder; replace it by a file"
        )
    return text
