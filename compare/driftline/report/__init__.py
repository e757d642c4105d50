"""A run's view as its readers want it: the public JSON, and Markdown for people. Pages use the same labels."""

from driftline.report.builds import build_problems
from driftline.report.markdown import markdown
from driftline.report.public import UnfinishedRunError, run_report

__all__ = ["UnfinishedRunError", "build_problems", "markdown", "run_report"]
