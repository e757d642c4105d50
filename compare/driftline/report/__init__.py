"""A judgement as its readers want it: the public JSON, and Markdown for people. Pages use the same labels.

Nothing is imported here: the texts of `driftline compare` need none of a run's.
"""
