"""Which Host and Origin a request may name: what keeps a web page elsewhere from writing to a server on 127.0.0.1.

The rule only; api/host_check.py applies it.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from driftline_service.settings import Settings

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class HostRule:
    """The names under which this service may be addressed, without ports."""

    names: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> "HostRule":
        public = _host(urlsplit(settings.public_url).netloc)
        return cls(frozenset({public, *settings.allowed_hosts}) | LOOPBACK)

    def refusal(self, *, method: str, host: str | None, origin: str | None) -> tuple[int, str, str] | None:
        """(status, reason, detail) if the request must not be served.

        A foreign Host is DNS rebinding or a missing setting; a foreign Origin on a write is a page of another site.
        """
        if host is None or _host(host) not in self.names:
            detail = (
                f"this service is not called {host or '(no Host)'}; add the name to DRIFTLINE_ALLOWED_HOSTS if it is"
            )
            return 421, "unknown_host", detail
        if method in SAFE_METHODS or origin is None:
            return None
        if _host(urlsplit(origin).netloc) not in self.names:
            return 403, "foreign_origin", f"writes from pages of {origin} are not accepted"
        return None


def _host(netloc: str) -> str:
    """Without its port; an IPv6 address keeps its brackets."""
    if netloc.startswith("["):
        return netloc.split("]")[0] + "]"
    return netloc.rsplit(":", 1)[0].lower() if ":" in netloc else netloc.lower()
