"""The lanes this service knows: driftline.toml, parsed by the library, so that the command line reads it alike."""

from driftline.lane_file import ConfigurationError, Lanes, read_lanes

__all__ = ["ConfigurationError", "Lanes", "read_lanes"]
