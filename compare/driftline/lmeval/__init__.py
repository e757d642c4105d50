"""lm-eval's output files (0.4.8 to 0.4.13) as typed values: the only place that knows their shape.

Nothing of lm-eval is imported. Samples are streamed; what a file lacks or contradicts is a named problem
(driftline.lmeval.integrity), and what cannot be read at all is a BadOutputError.
"""

from driftline.lmeval.output import LmEvalOutput, TaskOutput, open_output
from driftline.lmeval.refusal import BadOutputError
from driftline.lmeval.results_file import Results, TaskResults
from driftline.lmeval.sample import Sample

__all__ = ["BadOutputError", "LmEvalOutput", "Results", "Sample", "TaskOutput", "TaskResults", "open_output"]
