"""The quick child of a job of kind check."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import spoken

spoken.check()
