"""`make secrets`: random passwords and the URLs that hold them, one file each, for docker-compose.yml.

Existing files are kept, so that running it again changes nothing. The folder is closed to others (0700); the files are
readable (0444), since each container's own user reads them through a mount.
"""

import argparse
import os
import secrets
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "secrets"
RANDOM = ("postgres_password", "redis_password", "admin_token", "grafana_password")


def make(folder: Path, *, postgres: str = "postgres:5432", redis: str = "redis:6379") -> None:
    """Write what is missing. `postgres` and `redis` are host and port as containers see them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    values = {name: _kept(folder / name, secrets.token_urlsafe(32)) for name in RANDOM}
    database = f"postgresql+psycopg://driftline:{values['postgres_password']}@{postgres}/driftline"
    _kept(folder / "database_url", database)
    _kept(folder / "broker_url", f"redis://:{values['redis_password']}@{redis}/0")


def _kept(path: Path, value: str) -> str:
    """The file's text, after writing `value` if there was none."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(value)
    path.chmod(0o444)
    return value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    make(chosen.folder)
    print(f"secrets are in {chosen.folder}; `cat {chosen.folder}/admin_token` is what `driftline submit --token` takes")
