"""What a token allows. Each scope holds the ones below it."""

from enum import StrEnum


class Scope(StrEnum):
    READ = "read"
    SUBMIT = "submit"
    ADMIN = "admin"

    def allows(self, wanted: "Scope") -> bool:
        """Whether this scope suffices where `wanted` is asked for."""
        ranks = list(Scope)
        return ranks.index(self) >= ranks.index(wanted)
