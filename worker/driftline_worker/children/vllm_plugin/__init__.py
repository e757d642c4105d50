"""A vLLM plugin: the kernels at a commit (layout mamba2_varlen) in the place of vLLM's Mamba2 operators.

It is ours and never the commit's. `distribution` and `signatures` import the standard library only and serve the child
beside the engine too; the rest runs in every process of an engine, which finds it by the entry point that `distribution`
writes.
"""
