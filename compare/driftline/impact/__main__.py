"""`python -m driftline.impact`: one analysis in a process of its own, limited, since the sources are not ours.

Reads an Asked as JSON from standard input, writes the ImpactView to standard output. Parsing hostile text can exhaust
memory or Python's own stack; then only this process ends.
"""

import resource
import sys
from pathlib import Path

from driftline.git import GitError, Mirror
from driftline.impact.asked import Asked
from driftline.impact.report import impact_of

MEMORY_BYTES = 3 << 30
"""vLLM's sources as text and a few hundred of them as trees take 0.6 GB."""

PROCESSOR_SECONDS = 90
"""vLLM takes 3 to 6 s on an idle machine."""


def main() -> int:
    """0; 1 with a message if the commits cannot be read."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    asked = Asked.model_validate_json(sys.stdin.buffer.read())
    try:
        mirror = Mirror.open(Path(asked.cache), asked.url)
        view = impact_of(mirror, asked.base, asked.head, asked.kernels, asked.lanes)
    except GitError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(view.model_dump_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
