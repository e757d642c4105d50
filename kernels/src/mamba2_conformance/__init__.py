"""Trusted numeric checks of Mamba2 kernels: an oracle of its own, cases, and adapters to the kernels under test.

Nothing here imports `mamba2_varlen` at import, shares code with it, or comes from the commit under test: a bug made
alike in a kernel and in the reference beside it must still be seen.
"""
