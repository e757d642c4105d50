"""What is shown of a commit. Read from git's own output, which NULs divide."""

from dataclasses import dataclass
from datetime import UTC, datetime

FORMAT = "%H%x00%P%x00%an%x00%ct%x00%s"


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """`parents` are full SHAs, the first one first; `committed_at` is in UTC."""

    sha: str
    subject: str
    author: str
    committed_at: datetime
    parents: tuple[str, ...]


def parse_commit(text: str) -> CommitInfo:
    sha, parents, author, seconds, subject = text.split("\0", 4)
    return CommitInfo(
        sha=sha, subject=subject.strip(), author=author, committed_at=datetime.fromtimestamp(int(seconds), UTC),
        parents=tuple(parents.split()),
    )  # fmt: skip
