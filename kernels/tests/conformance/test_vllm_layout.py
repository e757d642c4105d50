"""Folders in vLLM's layout, in each of its three API eras: which adapter serves them, and what it says of them.

The operators are this project's own behind vLLM's signatures, index tensors and launch grids (`vllm_layout`).
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "vllm_layout"
ERAS = ("batch", "varlen", "chunk_aligned")
SCAN = "ssd_combined.py"

Check = Callable[..., list[dict[str, object]]]
Make = Callable[..., Path]

EVERY_OPERATOR = (
    "carried_state/lens_40_88",
    "carried_state/tile_",
    "carried_state/intermediate_states",
    "carried_state/empty_between",
    "option/D_full",
    "option/z",
    "option/bfloat16",
    "packing/one_token_between",
    "convolution/width_4_with_past",
    "convolution/channel_major",
    "convolution/step_width_4",
    "state_update/slots",
    "state_update/dt_limit",
    "gated_norm/groups",
    "chunk_size/",
)


@pytest.fixture
def folder(tmp_path: Path) -> Make:
    """An import folder with the operators of one era, one text put in place of another in one of its files."""

    def make(era: str, name: str = "", old: str = "", new: str = "") -> Path:
        ops = tmp_path / "ops"
        shutil.copytree(HERE / "every_era", ops)
        shutil.copytree(HERE / era, ops, dirs_exist_ok=True)
        (ops / "__init__.py").touch()
        if name:
            text = (ops / name).read_text()
            assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {name}"
            (ops / name).write_text(text.replace(old, new))
        return tmp_path

    return make


@pytest.mark.parametrize("era", ERAS)
def test_operators_of_every_era_are_put_every_question_they_have_an_answer_to(
    check: Check, folder: Make, era: str
) -> None:
    outcomes = check(folder(era), ["triton"], EVERY_OPERATOR, "vllm")
    assert [(one["name"], one["message"]) for one in outcomes if not one["passed"]] == []
    names = {str(one["name"]) for one in outcomes}
    assert {"carried_state/tile_chunk_scan_fwd_M32", "carried_state/tile_chunk_scan_fwd_M256"} <= names
    assert ("carried_state/intermediate_states" in names) == (era == "chunk_aligned")
    assert ("option/bfloat16_state" in names) == (era != "batch")
    assert not any(name.startswith(("chunk_size/refused", "state_update/dt_limit")) for name in names)
    outside = {str(one["name"]) for one in outcomes if one["kind"] == "outside"}
    assert outside == {"carried_state/empty_between", "convolution/channel_major_input"}


def test_a_state_lost_below_the_chunk_fails_whatever_a_tuner_would_choose(check: Check, folder: Make) -> None:
    broken = folder("batch", "ssd_chunk_scan.py", "LOSES_STATE_BELOW_CHUNK = False", "LOSES_STATE_BELOW_CHUNK = True")
    outcomes = check(broken, ["triton"], ("carried_state/lens_40_88", "carried_state/tile_", "packing/one"), "vllm")
    failed = {str(one["name"]) for one in outcomes if not one["passed"]}
    assert failed == {"carried_state/lens_40_88", "carried_state/tile_chunk_scan_fwd_M32"}


def test_a_file_that_is_not_there_is_not_judged_and_decides_nothing(check: Check, folder: Make) -> None:
    made = folder("varlen")
    (made / "ops" / "layernorm_gated.py").unlink()
    [outcome] = check(made, ["triton"], ("gated_norm/groups_gate",), "vllm")
    assert (outcome["kind"], outcome["passed"]) == ("outside", False)
    assert outcome["message"] == "not judged: this commit has no layernorm_gated.py"


@pytest.mark.parametrize(
    ("old", "new", "kind", "told"),
    [
        ("import mamba2_varlen", "import vllm.config", "outside", "not judged: layernorm_gated.py imports what"),
        ("import mamba2_varlen", "from vllm.platforms import x", "outside", "not judged: layernorm_gated.py imports"),
        ("import mamba2_varlen", "import nowhere", "contract", "ModuleNotFoundError: No module named 'nowhere'"),
        ("group_size=None, ", "", "outside", "not judged: rms_norm_gated of layernorm_gated.py has no group_size"),
    ],
)
def test_a_file_that_fails_takes_down_its_own_operator_only(
    check: Check, folder: Make, old: str, new: str, kind: str, told: str
) -> None:
    made = folder("chunk_aligned", "layernorm_gated.py", old, new)
    norm, scan = check(made, ["triton"], ("gated_norm/groups_gate", "packing/one_sequence"), "vllm")[::-1]
    assert scan["passed"], scan["message"]
    assert (norm["kind"], norm["passed"]) == (kind, False)
    assert str(norm["message"]).startswith(told)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    seq_idx,\n", "    sequences,\n", "unsupported unknown_signature"),
        ("from .scan import", "import vllm.config\nfrom .scan import", "unsupported unknown_import"),
        ("from .scan import", "raise SystemExit(0)\nfrom .scan import", "permanent kernels_do_not_import"),
    ],
)
def test_a_scan_that_cannot_be_had_says_why(folder: Make, old: str, new: str, said: str) -> None:
    assert loaded(folder("varlen", SCAN, old, new)).startswith(said)


def test_a_folder_without_a_scan_has_no_kernels(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "mamba_ssm.py").touch()
    assert loaded(tmp_path).startswith("unsupported no_kernels")


def test_an_installed_vllm_never_answers_for_a_commit(folder: Make, tmp_path: Path) -> None:
    installed = tmp_path / "vllm"
    installed.mkdir()
    (installed / "__init__.py").write_text("raise SystemExit('the installed vLLM was asked')\n")
    (installed / "config.py").touch()
    assert loaded(folder("batch"), f"sys.path.insert(0, {str(tmp_path)!r})") == "batch\n"


def loaded(folder: Path, before: str = "") -> str:
    """What a fresh process says of a folder: its era, or why there is none."""
    script = (
        f"import sys; from pathlib import Path; from mamba2_conformance.adapters import layout, protocol; {before}\n"
        "try: print(layout.load_layout('vllm', Path(sys.argv[1])).era)\n"
        "except protocol.LoadError as error: print(error.kind, error.reason, error)"
    )
    command = [sys.executable, "-P", "-c", script, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


DTYPE_ASKED = """    if x.element_size() == 2 and initial_states is not None and state_dtype is None:
        raise ValueError("the mixer always names its pool's dtype")
    chunks = cu_chunk_seqlens.diff()
"""


def test_states_of_16_bit_tokens_keep_the_dtype_in_which_they_came(check: Check, folder: Make) -> None:
    made = folder("chunk_aligned", SCAN, "    chunks = cu_chunk_seqlens.diff()\n", DTYPE_ASKED)
    names = ("carried_state/bfloat16", "carried_state/lens_40_88", "option/bfloat16")
    outcomes = check(made, ["triton"], names, "vllm")
    assert [(one["name"], one["message"]) for one in outcomes if not one["passed"]] == []
    assert {"carried_state/lens_40_88", "option/bfloat16"} <= {str(one["name"]) for one in outcomes}
    script = (
        "import torch; from mamba2_conformance.adapters.vllm.adapter import state_dtype_of; "
        "from mamba2_conformance.draw import Draw, ScanShape; from dataclasses import replace; "
        "p = Draw('s', 'cpu').scan(ScanShape((8,), dtype=torch.bfloat16, options=frozenset({'initial_states'}))); "
        "print(state_dtype_of(p), state_dtype_of(replace(p, initial_states=None)), "
        "state_dtype_of(replace(p, x=p.x.float())), state_dtype_of(replace(p, state_dtype=torch.float16)))"
    )
    told = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["torch.float32", "None", "None", "torch.float16"]


PLATFORM = """
from vllm.platforms import current_platform as here
asked = (here.is_device_capability(90), here.is_device_capability((9, 0)), here.has_device_capability(80),
         here.is_device_capability_family(100))
"""


def test_operators_that_ask_for_a_gpus_capability_at_import_are_judged(check: Check, folder: Make) -> None:
    """As vLLM's do from 0.32 on: nothing is a Hopper where there is no GPU."""
    told = f"{PLATFORM}if any(asked): raise ValueError(asked)\nimport mamba2_varlen"
    made = folder("chunk_aligned", "layernorm_gated.py", "import mamba2_varlen", told)
    [outcome] = check(made, ["triton"], ("gated_norm/groups_gate",), "vllm")
    assert outcome["passed"], outcome["message"]
