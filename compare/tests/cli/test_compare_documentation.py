"""docs/compare.md names every problem that the code can report, with whether it blocks, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = [
    ROOT / "compare/driftline/lmeval/integrity.py",
    *sorted((ROOT / "compare/driftline/comparison").glob("*.py")),
]
PATTERNS = (
    r'yield\s+\(?\s*"(\w+)",\s*(True|False)',
    r'code="(\w+)",\s*blocks=(True|False)',
    r'_block(ing)\("(\w+)"',
)  # fmt: skip


def reported():
    text = "\n".join(path.read_text() for path in SOURCES)
    found = {(code, blocks == "True") for pattern in PATTERNS[:2] for code, blocks in re.findall(pattern, text)}
    found |= {(code, True) for _, code in re.findall(PATTERNS[2], text)}
    return found | {(f"{part}_differs", True) for part in ("text", "prompt", "gold_answer")}


def test_every_problem_is_documented():
    rows = re.findall(
        r"^\| ((?:`\w+`(?:, )?)+) \| (yes|no) \|", (ROOT / "docs/compare.md").read_text(), flags=re.MULTILINE
    )
    documented = {(code, blocks == "yes") for codes, blocks in rows for code in re.findall(r"\w+", codes)}
    assert len(documented) > 30
    assert documented == reported()
