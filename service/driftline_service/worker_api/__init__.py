"""The HTTP a worker speaks (driftline.contracts.worker_api). What becomes of a run is decided in runs/."""

from driftline_service.worker_api.router import router

__all__ = ["router"]
