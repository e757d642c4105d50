"""What a reader can do about a run that ended without a verdict, or is not as they expected."""

from shlex import quote

from driftline.contracts.words import RunState

ADVICE = {
    RunState.QUEUED: "Waiting for a worker. If this stays, none serves its queue; driftline doctor says what is missing.",
    RunState.FAILED: "Nothing was judged. Put right what the reason names, then submit the same commits again.",
    RunState.CANCELLED: "Somebody ended it before its verdict. Submit the same commits again if you still want one.",
    RunState.SUPERSEDED: "A newer commit of the same branch took its place. Look at the newer run.",
}  # fmt: skip


def advice(state: RunState) -> str:
    """One or two sentences, or nothing where the page speaks for itself."""
    return ADVICE.get(state, "")


def resubmit_command(repository: str, *, base: str, head: str) -> str:
    """What to type to ask for the same again."""
    return f"driftline submit --repo {quote(repository)} --head {head} --base {base} --watch"
