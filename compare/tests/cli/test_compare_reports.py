"""What `driftline compare` prints and writes: explanation, Markdown and the page; and what it loads for that."""

import json
import os
import re
import subprocess
import sys

RIGHT = [place % 3 != 0 for place in range(600)]


def lost(count, gained=0):
    """RIGHT with so many answers lost and gained."""
    changed = list(RIGHT)
    for place in [i for i, right in enumerate(RIGHT) if right][:count]:
        changed[place] = False
    for place in [i for i, right in enumerate(RIGHT) if not right][:gained]:
        changed[place] = True
    return changed


def test_the_explanation_says_all_four_things(here, lm_eval_files, tmp_path):
    lm_eval_files.write(tmp_path / "base", lm_eval_files.gsm8k(RIGHT))
    lm_eval_files.write(tmp_path / "head", lm_eval_files.gsm8k(lost(60), responses={3: "No idea."}))
    told = here("compare", "base", "head", "--explain").stdout
    assert "What was compared" in told
    assert "gsm8k: 600 questions; the answers' texts differ in 1 (0.2 %)." in told
    assert "Head lost 60 answers that base had right, and gained 0 that base had wrong." in told
    assert "chance alone would give so uneven a split of the changed answers with p < 0.0001" in told
    assert "The true move lies in [-12" in told
    assert "What would make it surer: evaluate both again" in told
    answer = here("compare", "base", "head", "--explain", "--json")
    assert json.loads(answer.stdout)["verdict"] == "regressed"
    assert "What was compared" in answer.stderr


def test_markdown_is_one_table_and_the_problems(here, lm_eval_files, tmp_path):
    for name, right in (("base", RIGHT), ("head", lost(60))):
        lm_eval_files.write(tmp_path / name, lm_eval_files.gsm8k(right, total=1319))
    told = here("compare", "base", "head", "--markdown").stdout
    rows = [line for line in told.splitlines() if line.startswith("|gsm8k|exact_match|")]
    assert len(rows) == 2
    assert "|60|0|" in rows[0]
    assert rows[0].endswith("|exact McNemar|**regressed**|")
    assert told.startswith("## regressed")
    assert "- `limited`: base, gsm8k" in told


def test_the_page_needs_nothing_else_and_shows_hostile_answers_as_text(here, lm_eval_files, tmp_path):
    hostile = {1: "<script>alert(1)</script> \0 the end", 2: " It is 3, I think.\n#### 3"}
    lm_eval_files.write(tmp_path / "base", lm_eval_files.gsm8k(RIGHT))
    lm_eval_files.write(tmp_path / "head", lm_eval_files.gsm8k(lost(2), responses=hostile))
    answer = here("compare", "base", "head", "--html", "report.html")
    assert answer.returncode == 0, answer.stderr
    page = (tmp_path / "report.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\0" not in page
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)""", page), "nothing is loaded from elsewhere"
    assert page.count("<svg") == 1
    assert 'exact_match under strict-match: <span class="badge lost">lost</span>' in page
    assert "<mark>&lt;script&gt;alert(1)&lt;/script&gt;</mark>" in page
    assert " It is <mark>3,</mark> I think." in page
    assert page.count("<article>") == 2


def test_as_a_program_of_its_own(driftline, lm_eval_files, tmp_path):
    for name, right in (("base", RIGHT), ("head", lost(60))):
        lm_eval_files.write(tmp_path / name, lm_eval_files.gsm8k(right), zipped=name == "head")
    answer = driftline("compare", "base", "head", "--json", folder=tmp_path)
    assert (answer.returncode, json.loads(answer.stdout)["verdict"], answer.stderr) == (2, "regressed", "")


def test_neither_torch_nor_the_service_nor_a_socket_is_loaded(lm_eval_files, tmp_path):
    for name in ("base", "head"):
        lm_eval_files.write(tmp_path / name, lm_eval_files.gsm8k(RIGHT))
    heavy = {"torch", "driftline_service", "sqlalchemy", "httpx", "scipy.optimize", "scipy.stats", "pygal", "jinja2"}
    program = (
        "import sys\nfrom driftline.cli.app import run\n"
        f"code = run(['compare', {str(tmp_path / 'base')!r}, {str(tmp_path / 'head')!r}, '--explain'])\n"
        f"print(code, sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "0 []\n"


def test_a_folder_whose_name_is_no_text_is_told_all_the_same(driftline, lm_eval_files, tmp_path):
    name = os.fsdecode(b"head-\xff")
    for place, right in (("base", RIGHT), (name, lost(60))):
        lm_eval_files.write(tmp_path / place, lm_eval_files.gsm8k(right))
    answer = driftline("compare", "base", name, "--explain", "--html", "report.html", folder=tmp_path)
    assert answer.returncode == 2, answer.stderr
    assert "head-\\udcff" in answer.stdout
    assert "head-\\udcff" in (tmp_path / "report.html").read_text()
    answer = driftline("compare", "base", name + "-nowhere", folder=tmp_path)
    assert (answer.returncode, answer.stderr.count("\n")) == (1, 1)


def test_a_significant_move_inside_the_margin_is_told_in_words(here, lm_eval_files, tmp_path):
    lm_eval_files.write(tmp_path / "base", lm_eval_files.gsm8k(RIGHT))
    lm_eval_files.write(tmp_path / "head", lm_eval_files.gsm8k(lost(20)))
    told = "gsm8k, exact_match, strict-match differs significantly, by -3.33 points, but wholly inside the margin"
    wide = here("compare", "base", "head", "--margin", "0.1")
    assert (wide.returncode, wide.stdout.count(told)) == (0, 1)
    assert told in here("compare", "base", "head", "--margin", "0.1", "--markdown").stdout
    assert "differs significantly" not in here("compare", "base", "base", "--margin", "0.1").stdout


def test_a_model_without_a_name_is_said_to_have_none(here, lm_eval_files, tmp_path):
    lm_eval_files.write(
        tmp_path / "base", lm_eval_files.gsm8k(RIGHT), edit_results=lambda found: found.pop("model_name", None)
    )
    assert "(no model named, lm-eval" in here("compare", "base", "base", "--explain").stdout
    assert "base no model named" in here("compare", "base", "base", "--markdown").stdout
