"""Empties the outbox: mints a claim token, gives the message to the broker, notes that it went."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from driftline.contracts.words import JobState

from driftline_service.database import outbox_queries
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import ClaimToken
from driftline_service.dispatch import tokens
from driftline_service.dispatch.producer import BrokerDown, Producer
from driftline_service.logs import about, logger

CLAIM_TOKEN_LIFE = timedelta(hours=1)
"""A message that waits longer behind other work is answered 401; by then another one is on its way."""

LONGEST_BACK_OFF = timedelta(seconds=30)
"""The most a message waits after its broker is back."""

MAX_TRIES_FOR_BACK_OFF = 6
"""2**6 seconds are beyond LONGEST_BACK_OFF."""

_log = logger("driftline.dispatch")


@dataclass(frozen=True, slots=True)
class Letter:
    """One message, ready to go. Without a token there is nothing left to ask for."""

    message_id: UUID
    job_id: UUID
    queue: str
    tries: int
    priority: int
    claim_token: str | None = field(repr=False)


class Sender:
    """One pass over the outbox at a time. A crash between two steps sends a message again, with a token of its own."""

    def __init__(self, sessions: Sessions, producer: Producer, clock: Callable[[], datetime]) -> None:
        self._sessions = sessions
        self._producer = producer
        self._clock = clock

    def send_due(self) -> int:
        """Send what is due and return how many messages went. A broker that is down ends the pass; its row waits."""
        sent = 0
        while (letter := self._take()) is not None:
            if letter.claim_token is None:
                continue
            with about(job_id=letter.job_id):
                if not self._deliver(letter, letter.claim_token):
                    break
            sent += 1
        return sent

    def _take(self) -> Letter | None:
        """Commit the token before the message leaves: a fast worker claims before this process runs again."""
        now = self._clock()
        with self._sessions.begin() as session:
            due = outbox_queries.next_due(session, now)
            if due is None:
                return None
            message, job, priority = due
            if job.state is not JobState.QUEUED:
                session.delete(message)
                return Letter(message.id, job.id, job.queue, message.tries, priority, None)
            token = tokens.mint()
            session.add(ClaimToken(token_hash=token.hash, job_id=job.id, expires_at=now + CLAIM_TOKEN_LIFE))
            message.tries += 1
            return Letter(message.id, job.id, job.queue, message.tries, priority, token.secret)

    def _deliver(self, letter: Letter, claim_token: str) -> bool:
        try:
            self._producer.send(letter.queue, letter.job_id, claim_token, priority=letter.priority)
        except BrokerDown as error:
            wait = min(timedelta(seconds=2 ** min(letter.tries - 1, MAX_TRIES_FOR_BACK_OFF)), LONGEST_BACK_OFF)
            _log.warning("the broker took no message", error=str(error), tries=letter.tries, wait=str(wait))
            with self._sessions.begin() as session:
                outbox_queries.postpone(session, letter.message_id, self._clock() + wait, str(error))
            return False
        with self._sessions.begin() as session:
            outbox_queries.mark_sent(session, letter.message_id, self._clock())
        return True
