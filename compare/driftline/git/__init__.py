"""Git as service and worker use it: a mirror per repository, every name checked before git sees it."""

from driftline.git.commit_info import CommitInfo
from driftline.git.errors import GitError
from driftline.git.kernels import Kernels
from driftline.git.mirror import Mirror, open_mirror

__all__ = ["CommitInfo", "GitError", "Kernels", "Mirror", "open_mirror"]
