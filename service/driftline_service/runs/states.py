"""Which state may follow which, as data. The graphs below are the same data for people: keep them in step.

Run:
```mermaid
stateDiagram-v2
    [*] --> queued
    queued --> building --> checking
    checking --> evaluating --> judging
    judging --> done
    judging --> evaluating : a first hit is to be confirmed by a fresh pair
    state "any unfinished state" as any
    any --> failed
    any --> cancelled
    any --> superseded
```
Job:
```mermaid
stateDiagram-v2
    [*] --> queued
    queued --> running : claimed
    queued --> succeeded : a baseline stands for it
    running --> succeeded : one attempt adopted
    running --> queued : attempt transient or lost, fewer than 3 so far and fewer than 2 timed out, or its worker stopped
    running --> failed : permanent, unsupported, or the last attempt
    queued --> cancelled
    running --> cancelled
```
A finished state never changes; the database refuses it too (trigger `keep_finished`).
"""

from driftline.contracts.words import JobState, RunState

_ENDS = frozenset({RunState.FAILED, RunState.CANCELLED, RunState.SUPERSEDED})

RUN_TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: _ENDS | {RunState.BUILDING},
    RunState.BUILDING: _ENDS | {RunState.CHECKING},
    RunState.CHECKING: _ENDS | {RunState.EVALUATING},
    RunState.EVALUATING: _ENDS | {RunState.JUDGING},
    RunState.JUDGING: _ENDS | {RunState.DONE, RunState.EVALUATING},
} | {state: frozenset() for state in RunState if state.finished}

JOB_TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.SUCCEEDED, JobState.CANCELLED}),
    JobState.RUNNING: frozenset({JobState.SUCCEEDED, JobState.QUEUED, JobState.FAILED, JobState.CANCELLED}),
} | {state: frozenset() for state in JobState if state.finished}


def may_become_run(state: RunState) -> tuple[RunState, ...]:
    """The run states from which `state` may be reached."""
    return tuple(before for before, after in RUN_TRANSITIONS.items() if state in after)


def may_become_job(state: JobState) -> tuple[JobState, ...]:
    """The job states from which `state` may be reached."""
    return tuple(before for before, after in JOB_TRANSITIONS.items() if state in after)
