"""House rules that a linter does not know: what may be committed, how long a file may be, where words may appear.

Run by `make check`. Each rule's message says what to do instead.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_BYTES = 30 << 20
MAX_PYTHON_LINES = 500
"""Think at 300, split at 500 (docs: CONTRIBUTING.md)."""

MACHINE_PATH = re.compile(r"/(?:work|farm)/[a-z]|/root/\.pyenv|pythonhosted|pypi\.org/simple")
GENERATED = re.compile(r"(^|/)(__pycache__|node_modules|\.venv|.*\.egg-info|out)(/|$)|\.pyc$")
TEXT_SUFFIXES = {".py", ".md", ".toml", ".yml", ".yaml", ".html", ".css", ".js", ".sh", ".ini", ".lock", ".json", ""}


def committed_files() -> list[Path]:
    """Files that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def problems_of(path: Path) -> list[str]:
    """What is wrong with one file, in words."""
    name = path.relative_to(ROOT).as_posix()
    found = []
    if path.stat().st_size > MAX_BYTES:
        found.append(f"{name}: larger than 30 MB; generate it or make it smaller")
    if GENERATED.search(name):
        found.append(f"{name}: generated; add it to .gitignore")
    if path.parent == ROOT / "kernels" and path.suffix == ".py":
        found.append(f"{name}: a .py file directly in kernels/ makes the name `kernels` importable; move it below src/")
    if path.suffix not in TEXT_SUFFIXES or path == Path(__file__).resolve():
        return found
    text = path.read_text(encoding="utf-8", errors="replace")
    if MACHINE_PATH.search(text):
        found.append(f"{name}: names a path or host of one machine; use a relative path or a setting")
    if path.suffix == ".py" and text.count("\n") > MAX_PYTHON_LINES:
        found.append(f"{name}: {text.count(chr(10))} lines; split it by noun")
    return found


def main() -> None:
    problems = [problem for path in committed_files() for problem in problems_of(path)]
    for problem in problems:
        sys.stderr.write(problem + "\n")
    if problems:
        raise SystemExit(1)
    sys.stdout.write("repository rules: kept\n")


if __name__ == "__main__":
    main()
