"""Kernels broken on purpose: the check must fail, and say where."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Check = Callable[..., list[dict[str, object]]]
Copy = Callable[..., Path]

WRAPPED = """

import functools

import torch

_right = ssd_prefill


@functools.wraps(_right)
def ssd_prefill(x, dt, A, B, C, *, metadata, initial_states=None, **options):
"""
"""Put behind the operators, so that a bug is planted in every backend alike and outlives a rewrite of their insides."""

DROPPED_STATE = (
    "operators.py",
    WRAPPED
    + """
    return _right(x, dt, A, B, C, metadata=metadata, initial_states=None, **options)
""",
)

LATE_DECAY = (
    "operators.py",
    WRAPPED
    + """
    result = _right(x, dt, A, B, C, metadata=metadata, initial_states=initial_states, **options)
    if initial_states is None:
        return result
    steps = dt.float() if options["dt_bias"] is None else dt.float() + options["dt_bias"]
    steps = torch.nn.functional.softplus(steps) if options["dt_softplus"] else steps
    boundaries = metadata.cu_seqlens.tolist()
    for state, start, end in zip(initial_states, boundaries, boundaries[1:]):
        end = min(end, start + metadata.chunk_size)
        decay = torch.cumsum(steps[start:end] * A, 0)
        late = decay - decay[torch.arange(end - start) // 16 * 16]
        read = C[start:end].float().repeat_interleave(A.shape[0] // C.shape[1], 1)
        gained = torch.einsum("hpn,thn->thp", state.float(), read) * (late.exp() - decay.exp())[..., None]
        z = options["z"]
        result.out[start:end] += gained if z is None else gained * torch.nn.functional.silu(z[start:end])
    return result
""",
)
"""vLLM PR 21783's bug: in a sequence's first chunk a carried state decays from the row tile's first row."""


def failed(outcomes: Sequence[dict[str, object]]) -> set[str]:
    return {str(one["name"]) for one in outcomes if not one["passed"]}


def test_a_reference_and_kernels_broken_alike_fail_on_carried_states_only(check: Check, broken_copy: Copy) -> None:
    outcomes = check(broken_copy(added=DROPPED_STATE), ["reference", "torch"])
    for backend in ("reference", "torch"):
        names = failed([one for one in outcomes if one["backend"] == backend])
        assert {"carried_state/lens_138_225", "carried_state/split_at_a_chunk", "carried_state/one_token_each"} <= names
        assert {name.split("/")[0] for name in names} == {"carried_state"}


def test_a_carried_state_that_decays_too_late_fails_there_only(check: Check, broken_copy: Copy) -> None:
    outcomes = check(broken_copy(added=LATE_DECAY), ["torch"])
    assert {"carried_state/lens_40_88", "carried_state/split_in_three"} <= failed(outcomes)
    assert {name.split("/")[0] for name in failed(outcomes)} == {"carried_state"}
    [worst] = [one for one in outcomes if one["name"] == "carried_state/lens_138_225"]
    assert isinstance(worst["max_abs_err"], float)
    assert worst["max_abs_err"] > 1.0
    assert "final_states" not in str(worst["message"])


def test_the_same_in_triton_fails_at_every_length_and_every_tile(check: Check, broken_copy: Copy) -> None:
    prefixes = ("carried_state/lens_", "carried_state/tile_ssd_chunk_scan", "packing/", "option/D")
    outcomes = check(broken_copy(added=LATE_DECAY), ["triton"], prefixes)
    carried = {str(one["name"]) for one in outcomes if str(one["name"]).startswith("carried_state")}
    assert failed(outcomes) == carried
    assert len(carried) >= 6 + 4


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
    assert names == {"state_update/slots", "state_update/int64_slots"}


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
    assert loaded(broken_copy(edit)).startswith(reason)


def test_kernels_from_elsewhere_are_never_judged_in_their_place(broken_copy: Copy) -> None:
    assert loaded(broken_copy(), "import mamba2_varlen").startswith("kernels_shadowed")


def loaded(folder: Path, before: str = "") -> str:
    """What a fresh process says when it loads the kernels of a folder after `before`."""
    script = (
        f"import sys; from pathlib import Path; from mamba2_conformance.adapters import layout, protocol; {before}\n"
        "try: layout.load_layout('mamba2_varlen', Path(sys.argv[1]))\n"
        "except protocol.LoadError as error: print(error.reason, error)"
    )
    command = [sys.executable, "-P", "-c", script, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
