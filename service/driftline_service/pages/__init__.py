"""The web pages: HTML and plots for people, from the same view that the API serves. They change nothing."""

from driftline_service.pages.router import router

__all__ = ["router"]
