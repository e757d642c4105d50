"""Driftline: whether a commit moved a model's accuracy. Pure library and command line; no service, no worker."""

__version__ = "0.1.0"
