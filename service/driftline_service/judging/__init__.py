"""From rows to judgement: assembles evidence for driftline.judge. It changes no state and judges nothing itself."""

from driftline_service.judging.changed_answers import changed_answers
from driftline_service.judging.evidence import load_evidence
from driftline_service.judging.job_views import job_views
from driftline_service.judging.live_view import live_view

__all__ = ["changed_answers", "job_views", "live_view", "load_evidence"]
