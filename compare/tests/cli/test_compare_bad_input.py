"""`driftline compare` on mistakes and damaged files: one line and a remedy, never a traceback."""

import random

import pytest

RIGHT = [place % 3 != 0 for place in range(9)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--margin", "0"), "--margin 0: a fraction between 0 and 1"),
        (("--margin", "2.5"), "0.025 is two and a half points"),
        (("--margin", "nan"), "--margin nan"),
        (("--metric-margin", "bleu"), "METRIC=VALUE"),
        (("--metric-margin", "bleu=-1"), "METRIC=VALUE"),
        (("--task", "mmlu"), "no task 'mmlu' in these evaluations; there are: gsm8k"),
        (("--filter", "none"), "there are: strict-match, flexible-extract"),
        (("--metric", "acc"), "there are: exact_match"),
        (("--markdown",), "--json or --markdown"),
        (("--html", "nowhere/report.html"), "nowhere/report.html: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line_and_a_remedy(compared, options, message):
    answer, _ = compared(RIGHT, RIGHT, *options)
    assert answer.returncode == 1
    assert message in answer.stderr
    assert answer.stderr.startswith("driftline: ")
    assert answer.stderr.count("\n") == 1


def test_a_damaged_file_is_bad_input(here, lm_eval_files, tmp_path):
    for name in ("base", "head"):
        lm_eval_files.write(tmp_path / name, lm_eval_files.gsm8k(RIGHT))
    path = next((tmp_path / "head").rglob("samples_*"))
    path.write_bytes(path.read_bytes()[:-9])
    answer = here("compare", "base", "head", "--json")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.count("\n") == 1
    assert "line 18: not complete JSON" in answer.stderr


def test_no_damage_is_a_traceback(here, lm_eval_files, tmp_path):
    """Bytes changed, cut out, doubled or put in at seeded places of both files: bad input, not comparable or unharmed."""
    for name in ("base", "head"):
        lm_eval_files.write(tmp_path / name, lm_eval_files.gsm8k(RIGHT))
    rng, seen = random.Random(5), set()  # noqa: S311 - damage, not secrets
    for path in [*(tmp_path / "head").rglob("*.json*")] * 40:
        sound = path.read_bytes()
        start, length = rng.randrange(len(sound)), rng.choice([1, 1, 30, 3000])
        put = rng.choice([b"", b"\0", b"\xff", b"7", b'"', b"NaN", sound[start : start + length] * 2])
        path.write_bytes(sound[:start] + put + sound[start + length :])
        seen.add(here("compare", "base", "head", "--json", "--html", "report.html").returncode)
        path.write_bytes(sound)
    assert {1, 3} <= seen <= {0, 1, 3}
