"""`/driftline …` in a comment on a pull request, understood or refused. Pure: who may say it is decided elsewhere."""

import shlex
from dataclasses import dataclass, field
from enum import StrEnum

from driftline.git.names import is_full_sha
from pydantic import TypeAdapter, ValidationError

from driftline_service.intake.request import Revision

PREFIX = "/driftline"
LONGEST_LINE = 500
_REVISION: TypeAdapter[str] = TypeAdapter(Revision)


class Verb(StrEnum):
    RUN = "run"
    CANCEL = "cancel"
    RERUN = "rerun"
    STATUS = "status"
    APPROVE = "approve"
    EXPLAIN = "explain"
    HELP = "help"


FREE = frozenset({Verb.STATUS, Verb.EXPLAIN, Verb.HELP})
"""Verbs that change nothing: anybody may say them."""

HELP = """| command | does |
|---|---|
| `/driftline run` | measures the pull request's head on the default lanes |
| `/driftline run "canary V1" "canary V0"` | on these lanes |
| `/driftline run against REF` | against another base than where the branch left main |
| `/driftline rerun` | measures the same head again |
| `/driftline cancel` | stops what runs for this pull request |
| `/driftline approve SHA` | lets this very commit of a fork run here |
| `/driftline status`, `/driftline explain` | says how far it is, or what a verdict means |"""


@dataclass(frozen=True, slots=True)
class Command:
    """What was asked for."""

    verb: Verb
    lanes: tuple[str, ...] = ()
    against: str | None = None
    sha: str | None = None


@dataclass(frozen=True, slots=True)
class Misunderstood:
    """A command that is none, and what to say about it."""

    reason: str
    help: str = field(default=HELP)


def parse(comment: str) -> Command | Misunderstood | None:
    """The one command of a comment: the first line that begins with /driftline, outside of quotes and code blocks."""
    lines = _spoken_lines(comment)
    found = [line for line in lines if line == PREFIX or line.startswith(PREFIX + " ")]
    if not found:
        return None
    if len(found) > 1:
        return Misunderstood(f"there are {len(found)} commands in this comment; please give one a comment")
    if len(found[0]) > LONGEST_LINE or not found[0].isprintable():
        return Misunderstood("this command is too long, or holds characters that cannot be read")
    try:
        words = shlex.split(found[0].removeprefix(PREFIX))
    except ValueError:
        return Misunderstood(
            'a quotation mark is left open; lanes with a blank in their name are quoted, `"canary V1"`'
        )
    return _command(words)


def _spoken_lines(comment: str) -> list[str]:
    """Lines the writer says, not those quoted or shown as code."""
    spoken, in_code = [], False
    for line in comment.splitlines():
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            in_code = not in_code
        elif not in_code and not line.startswith((">", "    ", "\t")):
            spoken.append(stripped)
    return spoken


def _command(words: list[str]) -> Command | Misunderstood:
    if not words:
        return Command(Verb.HELP)
    name, *rest = words
    try:
        verb = Verb(name.lower())
    except ValueError:
        return Misunderstood(f"there is no command `{_plain(name)}`")
    if verb is Verb.RUN:
        return _run(rest)
    if verb is Verb.APPROVE:
        if len(rest) != 1 or not is_full_sha(rest[0]):
            return Misunderstood("`approve` names the whole commit of 40 hexadecimal digits that you have looked at")
        return Command(verb, sha=rest[0])
    if rest:
        return Misunderstood(f"`{verb}` takes nothing more; got `{_plain(' '.join(rest))}`")
    return Command(verb)


def _run(words: list[str]) -> Command | Misunderstood:
    against = None
    if "against" in words:
        place = words.index("against")
        words, after = words[:place], words[place + 1 :]
        if len(after) != 1:
            return Misunderstood("`against` is followed by one branch, tag or commit, at the end of the command")
        try:
            against = _REVISION.validate_python(after[0])
        except ValidationError:
            return Misunderstood(f"`{_plain(after[0])}` is no name of a branch, tag or commit")
    return Command(Verb.RUN, lanes=tuple(words), against=against)


def _plain(text: str) -> str:
    """Somebody's words inside a code span."""
    return text.replace("`", "'")[:100]
