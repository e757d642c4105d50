"""The quick child of a job of kind build."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import spoken

spoken.build()
