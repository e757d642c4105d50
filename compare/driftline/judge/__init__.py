"""Evidence in, judgement out: the rules of design section 6, in one pure function (`run.judge`) and a few beside it.

No clock, no environment, no I/O: the same evidence always gives the same view, so any verdict can be recomputed. Nothing is
imported here: `driftline compare` uses a cell's tests alone, and must not wait for what only runs need.
"""
