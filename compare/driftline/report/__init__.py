"""A run's view as its readers want it: the public JSON, and Markdown for people. Pages use the same labels."""

from driftline.report.markdown import markdown
from driftline.report.public import UnfinishedRunError, run_report

__all__ = ["UnfinishedRunError", "markdown", "run_report"]
