"""Programs that a sandbox runs by path in the eval environment; the worker never imports them."""
