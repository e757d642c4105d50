"""The operators in plain torch operations, chunked; for CPUs first, right on a GPU too."""
