"""Our copy of gsm8k's scoring against the real lm-eval of the eval environment, on seeded odd strings."""

import json
import random
import subprocess
from pathlib import Path

from driftline.scoring import score

ROOT = Path(__file__).parents[3]
PIECES = (
    "#### ", "####", "#", " ", "\n", "\r\n", "$", ",", ".", "-", "...", "0", "7", "18", "1,000", "18.00", "-5",
    "$29.00.", "1e3", "the answer is", "Question:", "[invalid]", "[INVALID]", "\u0661\u0662", "\u00bd", "\u4e00", "\u212a",
    "\u0130", "\0", "\t", "\u2028", "é", "🙂",
)  # fmt: skip


def odd_pairs(count: int) -> list[tuple[str, str]]:
    draw = random.Random(20250801)  # noqa: S311
    return [odd_pair(draw) for _ in range(count)]


def odd_pair(draw: random.Random) -> tuple[str, str]:
    gold = draw.choice(("7", "18", "1,000", "-5"))
    said = draw.choice((gold, gold, draw.choice(PIECES)))
    response = "".join([*draw.choices(PIECES, k=draw.randint(0, 6)), said, *draw.choices(PIECES, k=draw.randint(0, 2))])
    return response, draw.choice(
        (f"so 3\n#### {gold}", f"#### {gold}\0", f"#### {said}.", "#### " + response, response)
    )


def test_scores_equal_lm_eval_on_odd_strings() -> None:
    pairs = odd_pairs(600)
    command = [str(ROOT / ".venv-eval/bin/python"), "-P", str(Path(__file__).with_name("lm_eval_scores.py"))]
    done = subprocess.run(command, input=json.dumps(pairs), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    (theirs,) = json.loads(done.stdout)
    ours = [[[name, extracted, float(right)] for name, (extracted, right) in score(*pair).items()] for pair in pairs]
    assert [(p, o, t) for p, o, t in zip(pairs, ours, theirs, strict=True) if o != t] == []
    rights = [right for outcome in theirs for _, _, right in outcome]
    assert 100 < sum(rights) < 1100, "the strings are to hit both outcomes"
