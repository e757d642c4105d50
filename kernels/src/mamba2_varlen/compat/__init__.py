"""Other projects' call signatures on top of ours. Argument translation only; each module names the version it
follows."""
