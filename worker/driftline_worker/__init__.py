"""The GPU side: claims jobs, checks code out, runs it in a sandbox, reports. Holds no database URL."""
