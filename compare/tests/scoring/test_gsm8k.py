"""gsm8k's scoring against vectors measured with lm-eval 0.4.13."""

import subprocess
import sys

import pytest
from driftline.scoring import INVALID, score


@pytest.mark.parametrize(
    ("response", "gold", "strict", "flexible"),
    [
        ("#### 1,000", "1000", True, True),
        ("#### 1000.", "1000", True, True),
        ("#### -5", "-5", True, True),
        ("#### $18", "18", False, True),
        ("####18", "18", False, True),
        ("#### 18.00", "18", False, False),
        ("The answer is $29.00.", "29", False, False),
        ("#### 42\n\nQ 7", "42", True, False),
        ("#### 18 (not 20)", "18", True, False),
        ("#### 10\n#### 12", "12", False, True),
        ("and finally 7...", "7", False, False),
        ("It is 7 ...", "7", False, False),
        ("costs 5..", "5", False, False),
        ("", "5", False, False),
        ("no number", "5", False, False),
    ],
)
def test_known_scores(response: str, gold: str, strict: bool, flexible: bool) -> None:
    scored = score(response, f"Some reasoning, 3 of it.\n#### {gold}")
    rights = {name: outcome.right for name, outcome in scored.items()}
    assert rights == {"strict-match": strict, "flexible-extract": flexible}


def test_extracted_texts_are_kept() -> None:
    scored = score("#### 10\n#### 1,2 and 7...", "#### 12")
    assert scored["strict-match"].extracted == "10"
    assert scored["flexible-extract"].extracted == "7..."


def test_nothing_extracted_is_invalid() -> None:
    assert {outcome.extracted for outcome in score("no number", "#### 5").values()} == {INVALID}


def test_import_is_light() -> None:
    code = "import sys, driftline.scoring, driftline.questions; print({'numpy', 'scipy', 'lm_eval'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
