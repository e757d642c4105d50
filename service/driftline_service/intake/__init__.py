"""From a request to a planned run: the repository is fetched, names become commits, every refusal has a reason code."""
