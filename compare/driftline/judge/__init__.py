"""Evidence in, judgement out: the rules of design section 6, in one pure function and a few beside it.

No clock, no environment, no I/O: the same evidence always gives the same view, so any verdict can be recomputed.
"""

from driftline.judge.changed import changed_samples
from driftline.judge.inputs import METHOD_VERSION
from driftline.judge.noise import noise_floor
from driftline.judge.run import judge

__all__ = ["METHOD_VERSION", "changed_samples", "judge", "noise_floor"]
