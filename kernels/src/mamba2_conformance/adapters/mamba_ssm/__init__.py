"""state-spaces/mamba's Triton operators, which have a batch dimension."""
