"""The one error of this package that people see: what is wrong with this machine or folder, and what to do about it."""


class CannotServe(Exception):  # noqa: N818 - reads as the sentence it is
    """The stack cannot be started or kept. One line, naming the thing and the remedy."""
