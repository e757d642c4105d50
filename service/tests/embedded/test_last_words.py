"""What a child that died is quoted with: why it ended, not that it did."""

import pytest
from driftline_service.embedded.child import Child, Program

POSTGRES = """LOG:  database system was not properly shut down; automatic recovery in progress
FATAL:  could not write to file "pg_wal/xlogtemp.6952": No space left on device
LOG:  shutting down due to startup process failure
LOG:  database system is shut down
"""
PYTHON = "Traceback (most recent call last):\n  File \"x.py\", line 1\nModuleNotFoundError: No module named 'x'\n\n"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (POSTGRES, 'FATAL:  could not write to file "pg_wal/xlogtemp.6952": No space left on device'),
        (PYTHON, "ModuleNotFoundError: No module named 'x'"),
        ("first\nlast\n", "last"),
        ("", ""),
    ],
)
def test_last_words(log, words, tmp_path):
    place = tmp_path / "child.log"
    place.write_text(log, encoding="utf-8")
    assert Child(Program("child", ("true",), {}, tmp_path, place)).last_words() == words


def test_a_child_without_a_log_said_nothing(tmp_path):
    assert Child(Program("child", ("true",), {}, tmp_path, tmp_path / "none")).last_words() == ""
