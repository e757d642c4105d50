"""Two lm-eval outputs, question by question: what `driftline compare` decides. No texts are written here.

The tests, intervals and verdicts are those of driftline.judge and driftline.statistics, as the service uses them.
"""

from driftline.comparison.changed import ChangedAnswer, changed_answers
from driftline.comparison.compared import Compared, ComparedTask, TestedCell, Wanted, compare

__all__ = ["ChangedAnswer", "Compared", "ComparedTask", "TestedCell", "Wanted", "changed_answers", "compare"]
