"""Ahead-of-time compilation of a commit's Triton kernels for GPUs that need not exist, and what it tells about them.

Imports Triton, and must run in a process in which Triton compiles: TRITON_INTERPRET unset when it is first imported.
"""
