"""Paired statistics: plain numbers in, plain numbers out. What they mean for a run is decided in driftline.judge.

docs/statistics.md says why each method was chosen. SciPy is imported when a function that needs it is called, never
before.
"""
