"""A comparison of two outputs loads no SciPy at all, a run's judgement never scipy.stats: each takes longer than the rest."""

import subprocess
import sys

CODE = """
import sys
import numpy as np
from driftline.statistics import bootstrap, change_points, equivalence, holm, mcnemar, paired_interval, permutation
from driftline.statistics import power, proportion
import driftline.judge.run
print(any(name.startswith(("scipy", "ruptures")) for name in sys.modules))
paired_interval.paired_interval(3, 1, 50, level=0.9)
paired_interval.paired_interval(30, 1, 50, level=0.9)
power.smallest_visible_drop(3, 1, 50, alpha=0.05)
power.smallest_visible_mean(power.Spread(0.1, 50), alpha=0.05)
bootstrap.mean_interval(np.arange(9.0), level=0.9)
permutation.sign_flip_p(np.arange(9.0))
print(any(name.startswith("scipy") for name in sys.modules))
proportion.clustered_share(np.array([1, 0]), np.array([2, 2]), level=0.9)
proportion.exact_share(0, 9, level=0.9)
print("scipy.stats" in sys.modules)
change_points.change_points(np.arange(9.0))
print("ruptures" in sys.modules, "matplotlib" in sys.modules)
"""


def test_scipy_comes_late_and_its_stats_never() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False", "True", "False"]
