"""What a worker is lent to fetch a private repository: a token for that one repository, made when it claims a job.

It goes over HTTP with the claim, lives in the worker's memory while the code is checked out, and is stored nowhere.
"""

from sqlalchemy.orm import Session

from driftline_service.database import github_queries
from driftline_service.github.client import AppClient, Client, GithubDown, Uninstalled
from driftline_service.logs import logger
from driftline_service.settings import Settings

_log = logger("driftline.github")


class Sources:
    """Knows how repositories are read. Without the App's key it knows of none."""

    def __init__(self, client: Client | None) -> None:
        self._client = client

    @classmethod
    def of(cls, settings: Settings) -> "Sources":
        if settings.github_app_id is None or settings.github_private_key is None:
            return cls(None)
        key = settings.github_private_key.get_secret_value()
        return cls(AppClient(settings.github_app_id, key, settings.github_api_url))

    def token_for(self, session: Session, url: str) -> str | None:
        """A token that reads the repository, None of a public one. If GitHub gives none, the fetch will fail and be
        tried again, and the log says why."""
        source = None if self._client is None else github_queries.private_source(session, url)
        if source is None or self._client is None:
            return None
        try:
            return self._client.source_token(source.installation_id, source.repository)
        except (GithubDown, Uninstalled) as error:
            _log.warning("no_source_token", repository=source.repository, error=str(error))
            return None
