"""Kernels broken on purpose: the check must fail, and say where."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Check = Callable[..., list[dict[str, object]]]
Copy = Callable[..., Path]

DROPPED_STATE = (
    "operators.py",
    "initial_states=initial_states,\n        state_dtype",
    "initial_states=None,\n        state_dtype",
)
"""In the operator itself, so that `reference` and every other backend lose the state alike."""

LATE_DECAY_TORCH = (
    (
        "torch_backend/ssd.py",
        "y[waves[0] : waves[-1]], scratch)",
        "y[waves[0] : waves[-1]], scratch, 0 if waves[0] else waves[1])",
    ),
    (
        "torch_backend/ssd.py",
        "y: Tensor, scratch: Scratch) -> None:",
        "y: Tensor, scratch: Scratch, starts: int) -> None:",
    ),
    (
        "torch_backend/ssd.py",
        "decay = _carried_decay(block, rows).transpose(1, 2).unsqueeze(-1)",
        "late = block.decay[:starts, :, rows]\n"
        "        decay = _carried_decay(block, rows)\n"
        "        decay[:starts] = torch.exp(late - late[..., :1])\n"
        "        decay = decay.transpose(1, 2).unsqueeze(-1)",
    ),
)
LATE_DECAY_TRITON = (
    (
        "triton_backend/ssd_chunk_scan.py",
        "out = out * _carried_decay(decay)[:, None]",
        "late = tl.where(is_first, tl.load(decay_ptr + per_row + first_row), 0.0)\n"
        "            out = out * _carried_decay(decay - late)[:, None]",
    ),
)
"""vLLM PR 21783's bug: in a sequence's first chunk a carried state decays from the row tile's first row."""


def failed(outcomes: Sequence[dict[str, object]]) -> set[str]:
    return {str(one["name"]) for one in outcomes if not one["passed"]}


def test_a_reference_and_kernels_broken_alike_fail_on_carried_states_only(check: Check, broken_copy: Copy) -> None:
    outcomes = check(broken_copy(DROPPED_STATE), ["reference", "torch"])
    for backend in ("reference", "torch"):
        names = failed([one for one in outcomes if one["backend"] == backend])
        assert {"carried_state/lens_138_225", "carried_state/split_at_a_chunk", "carried_state/one_token_each"} <= names
        assert {name.split("/")[0] for name in names} == {"carried_state"}


def test_a_carried_state_that_decays_too_late_in_torch_fails_there_only(check: Check, broken_copy: Copy) -> None:
    outcomes = check(broken_copy(*LATE_DECAY_TORCH), ["torch"])
    assert "carried_state/lens_40_88" in failed(outcomes)
    assert {name.split("/")[0] for name in failed(outcomes)} == {"carried_state"}
    [worst] = [one for one in outcomes if one["name"] == "carried_state/lens_138_225"]
    assert isinstance(worst["max_abs_err"], float)
    assert worst["max_abs_err"] > 0.1
    assert "final_states" not in str(worst["message"])


def test_a_carried_state_that_decays_too_late_in_triton_fails_there_only(check: Check, broken_copy: Copy) -> None:
    prefixes = ("carried_state/lens_", "carried_state/tile_ssd_chunk_scan", "packing/", "chunk_size/", "option/D")
    names = failed(check(broken_copy(*LATE_DECAY_TRITON), ["triton"], prefixes))
    assert {"carried_state/lens_40_100_37", "carried_state/lens_70_58_128"} <= names
    assert len([name for name in names if "/tile_" in name]) == 4
    assert {name.split("/")[0] for name in names} == {"carried_state"}


def test_an_output_left_unwritten_shows_as_not_finite(check: Check, broken_copy: Copy) -> None:
    edit = ("torch_backend/ssd.py", "        y = y.mul_(silu(arguments.z.to(y.dtype)))", "        return")
    [outcome] = check(broken_copy(edit), ["torch"], ["option/z"])
    assert not outcome["passed"]


def test_an_exception_in_a_kernel_is_a_failed_case_with_its_text(check: Check, broken_copy: Copy) -> None:
    edit = ("torch_backend/norm.py", "def rms_norm_gated", "def rms_norm_lost")
    outcomes = check(broken_copy(edit), ["torch"], ["gated_norm/", "convolution/width_4"])
    assert {name.split("/")[0] for name in failed(outcomes)} == {"gated_norm"}
    [first] = [one for one in outcomes if one["name"] == "gated_norm/groups"]
    assert first["max_abs_err"] is None
    assert "AttributeError" in str(first["message"])


def test_a_chunk_size_that_is_accepted_quietly_fails(check: Check, broken_copy: Copy) -> None:
    edit = ("metadata.py", "if chunk_size < 1 or chunk_size & (chunk_size - 1):", "if chunk_size < 1:")
    names = failed(check(broken_copy(edit), ["torch"], ["chunk_size/"]))
    assert names == {f"chunk_size/refused_{size}" for size in (3, 29, 48, 100)}


def test_a_step_that_touches_another_slot_fails_on_slots(check: Check, broken_copy: Copy) -> None:
    edit = ("torch_backend/ssu.py", "def selective_state_update(arguments: SsuArguments) -> Tensor:", WRITES_ELSEWHERE)
    names = failed(check(broken_copy(edit), ["torch"], ["state_update/"]))
    assert names == {"state_update/slots"}


WRITES_ELSEWHERE = """def selective_state_update(arguments: SsuArguments) -> Tensor:
    if arguments.state.shape[0] > arguments.x.shape[0]:
        arguments.state[1].zero_()
    return update(arguments)


def update(arguments: SsuArguments) -> Tensor:"""


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (
            ("__init__.py", "import VarlenMetadata, build_metadata", "import VarlenMetadata, build_metadata, gone"),
            "kernels_do_not_import",
        ),
        (
            (
                "operators.py",
                "    return_intermediate_states: bool = False,\n    backend: str",
                "    backend_name: str",
            ),
            "unknown_signature",
        ),
    ],
)
def test_kernels_that_cannot_be_loaded_say_why(broken_copy: Copy, edit: tuple[str, str, str], reason: str) -> None:
    script = (
        "import sys; from pathlib import Path; from mamba2_conformance.adapters import layout, protocol\n"
        "try: layout.load_layout('mamba2_varlen', Path(sys.argv[1]))\n"
        "except protocol.LoadError as error: print(error.reason, error)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(broken_copy(edit))], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(reason)
