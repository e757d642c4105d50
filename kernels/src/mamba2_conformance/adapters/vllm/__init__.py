"""vLLM's operator files: loaded from a folder with stand-ins for what they import, in three API eras."""
