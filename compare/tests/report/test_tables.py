"""Table cells hold whatever a commit's author or a kernel's error says, and stay one inert line."""

import pytest
from driftline.report.tables import table, text


@pytest.mark.parametrize(
    ("hostile", "inert"),
    [
        ("a|b", "a\\|b"),
        ("two\nlines\r\n\ttabbed", "two lines tabbed"),
        ("`code` ``` fence", "\\`code\\` \\`\\`\\` fence"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("&lt;", "&amp;lt;"),
        ("[a](http://b)", "\\[a\\](http://b)"),
        ("ends in \\", "ends in \\\\"),
        ("\\| already escaped", "\\\\\\| already escaped"),
        ("@everyone closes #1", "@\u200beveryone closes \\#1"),
        ("**bold** _em_ __strong__", "\\*\\*bold\\*\\* \\_em\\_ \\__strong_\\_"),
        ("a\0b", "a\\0b"),
    ],
)
def test_hostile_text_is_inert(hostile: str, inert: str) -> None:
    assert text(hostile) == inert


def test_names_read_as_lm_eval_prints_them() -> None:
    assert text("gsm8k_canary") == "gsm8k_canary"
    assert text("exact_match") == "exact_match"


def test_long_text_is_cut() -> None:
    assert len(text("x" * 5000)) == 300
    assert text("x" * 5000).endswith("…")


def test_every_row_of_a_table_has_as_many_cells_as_its_header() -> None:
    lines = table(("A", "B"), "lr", [(text("x|y\nz"), "1"), ("", "2")]).splitlines()
    assert lines == ["|A|B|", "|---|---:|", "|x\\|y z|1|", "||2|"]
