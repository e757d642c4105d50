"""The cases, one subject a file. Names begin with the subject; `carried_state/` cases alone give a scan a state."""
