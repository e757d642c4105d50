"""What a child imports, in processes of their own: how it is imported, and what is not imported yet."""

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "driftline_worker"
AS_A_CHILD = f"""
import sys
from types import ModuleType
package = ModuleType("driftline_worker")
package.__path__ = [{str(PACKAGE)!r}]
sys.modules["driftline_worker"] = package
from driftline_worker.children.heavy_imports import absent, heavy_imports
"""


def printed(code: str) -> str:
    command = [sys.executable, "-P", "-s", "-c", AS_A_CHILD + code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_an_evaluation_leaves_scikit_learn_alone_and_lm_eval_can_have_it_later() -> None:
    code = """
with heavy_imports(), absent("sklearn"):
    from driftline_worker.children.hf_engine import evaluation
print("sklearn" in sys.modules)
from lm_eval.api.metrics import matthews_corrcoef
print(matthews_corrcoef([(1, 1), (0, 0)]))
"""
    assert printed(code) == "False\n1.0\n"


def test_what_is_imported_already_stays() -> None:
    code = """
import json
with absent("json"):
    import json as again
print(again is json is sys.modules["json"])
"""
    assert printed(code) == "True\n"


def test_garbage_is_collected_again_whatever_an_import_does() -> None:
    code = """
import gc
try:
    with heavy_imports():
        print(gc.isenabled())
        import no_such_module
except ImportError:
    print(gc.isenabled(), gc.get_freeze_count() > 0)
"""
    assert printed(code) == "False\nTrue True\n"


def test_no_vllm_is_imported_before_the_commit_s_is_in_place(tmp_path: Path) -> None:
    (tmp_path / "vllm.py").write_text("raise SystemExit('the release, before the commit is in place')\n")
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
from driftline_worker.children.vllm_engine import evaluation
print("vllm" in sys.modules)
"""
    assert printed(code) == "False\n"
