"""From rows to judgement: assembles evidence for driftline.judge. It changes no state and judges nothing itself."""

from driftline_service.judging.evidence import load_evidence
from driftline_service.judging.job_views import job_views
from driftline_service.judging.live_view import changed_samples_of, live_view

__all__ = ["changed_samples_of", "job_views", "live_view", "load_evidence"]
