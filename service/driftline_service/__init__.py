"""The control plane: HTTP, database, run life cycle. Never imports the worker, torch or vLLM."""
