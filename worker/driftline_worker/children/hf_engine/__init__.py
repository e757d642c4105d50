"""Engine `hf`: lm-eval's own hf model, its Mamba2 functions replaced by the kernels built at a commit.

Runs only in the eval environment, inside a child. Imports the standard library, torch, transformers and lm-eval; the
kernels under test are imported by path, last of all, by `kernels_loader`.
"""
