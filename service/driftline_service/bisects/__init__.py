"""The search for the first bad commit: what may be tried, what is tried next, and what came out. Each step is a run."""
