"""The public HTTP API, one file a resource. It parses and reads; what a run does next is decided elsewhere."""
