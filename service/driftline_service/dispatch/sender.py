"""Empties the outbox, a batch at a time: mints claim tokens, gives the messages to the broker, notes which went."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from driftline.contracts.words import JobState
from sqlalchemy.orm import Session

from driftline_service.database import outbox_queries
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import ClaimToken
from driftline_service.dispatch import tokens
from driftline_service.dispatch.producer import BrokerDown, Producer
from driftline_service.dispatch.tokens import Token
from driftline_service.logs import about, logger

CLAIM_TOKEN_LIFE = timedelta(hours=1)
"""A message that waits longer behind other work is answered 401; by then another one is on its way."""

LONGEST_BACK_OFF = timedelta(seconds=30)
"""The most a message waits after its broker is back."""

MAX_TRIES_FOR_BACK_OFF = 6
"""2**6 seconds are beyond LONGEST_BACK_OFF."""

_log = logger("driftline.dispatch")


BATCH = 25
"""Messages of one transaction: with one of their own each, 500 jobs took 16 s on two busy cores. A crash in between sends
so many twice."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One message, ready to go. `tries` counts this one."""

    message_id: UUID
    job_id: UUID
    queue: str
    tries: int
    priority: int
    token: Token = field(repr=False)


class Sender:
    """One pass over the outbox at a time. A crash between two steps sends messages again, with tokens of their own."""

    def __init__(self, sessions: Sessions, producer: Producer, clock: Callable[[], datetime]) -> None:
        self._sessions = sessions
        self._producer = producer
        self._clock = clock

    def send_due(self) -> int:
        """Send what is due and return how many messages went. A broker that is down ends the pass; its row waits."""
        sent = 0
        while (letters := self._take()) is not None:
            gone = self._deliver(letters)
            sent += gone
            if gone < len(letters):
                break
        return sent

    def _take(self) -> list[Letter] | None:
        """The next batch, less what nobody needs any more; None if nothing is due. Tokens are committed before a message
        leaves: a fast worker claims before this process runs again."""
        now = self._clock()
        with self._sessions.begin() as session:
            rows = outbox_queries.due(session, now, BATCH)
            letters = []
            for message, job, priority in rows:
                if job.state is not JobState.QUEUED:
                    session.delete(message)
                    continue
                token = tokens.mint()
                session.add(ClaimToken(token_hash=token.hash, job_id=job.id, expires_at=now + CLAIM_TOKEN_LIFE))
                letters.append(Letter(message.id, job.id, job.queue, message.tries + 1, priority, token))
        return letters if rows else None

    def _deliver(self, letters: Sequence[Letter]) -> int:
        """How many went, in their order, until the broker took no more."""
        sent: dict[UUID, datetime] = {}
        refused: BrokerDown | None = None
        for letter in letters:
            try:
                with about(job_id=letter.job_id):
                    self._producer.send(letter.queue, letter.job_id, letter.token.secret, priority=letter.priority)
            except BrokerDown as error:
                refused = error
                break
            sent[letter.message_id] = self._clock()
        with self._sessions.begin() as session:
            outbox_queries.mark_sent(session, sent)
            if refused is not None:
                self._keep_back(session, letters[len(sent) :], refused)
        return len(sent)

    def _keep_back(self, session: Session, letters: Sequence[Letter], refused: BrokerDown) -> None:
        """The first was refused and waits; the others were not tried."""
        first = letters[0]
        wait = min(timedelta(seconds=2 ** min(first.tries - 1, MAX_TRIES_FOR_BACK_OFF)), LONGEST_BACK_OFF)
        _log.warning("the broker took no message", error=str(refused), tries=first.tries, wait=str(wait))
        outbox_queries.postpone(session, first.message_id, self._clock() + wait, str(refused))
        outbox_queries.forget_tokens(session, (letter.token.hash for letter in letters))
