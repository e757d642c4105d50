"""Makes the canary's scripts importable by file name; last on the path, so that no installed package is hidden.

`evaluate` is also an installed package's name (lm-eval imports it), so the script of that name is loaded as `scorer`.
"""

import importlib.util
import sys
from pathlib import Path

CANARY = Path(__file__).parents[1]
sys.path.append(str(CANARY))
spec = importlib.util.spec_from_file_location("scorer", CANARY / "evaluate.py")
scorer = importlib.util.module_from_spec(spec)
sys.modules["scorer"] = scorer
spec.loader.exec_module(scorer)
