"""Prints `VERSION FOLDER` of each release of Triton that driftline.toml names beside the evaluation environment's own."""

import sys
from pathlib import Path

from driftline.lane_file import read_lanes

if __name__ == "__main__":
    for release in read_lanes(Path("driftline.toml")).tritons:
        if release.folder is not None:
            sys.stdout.write(f"{release.version} {release.folder}\n")
