"""The scan's decode step."""

from collections.abc import Callable
from typing import Any

import mamba2_varlen as m2
import pytest
import torch
from torch import Tensor


def _inputs(random_tensor: Callable[..., Tensor], rows: int, groups: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    B, C = random_tensor(2, rows, groups, 12, dtype=dtype)
    A = -random_tensor(4).abs()
    return random_tensor(rows, 4, 6, dtype=dtype), random_tensor(rows, 4, dtype=dtype), A, B, C


def _step(backend: str, state: Tensor, inputs: tuple[Tensor, ...], **options: Any) -> Tensor:
    out = torch.full_like(inputs[0], torch.nan)
    return m2.selective_state_update(state, *inputs, out=out, dt_softplus=True, backend=backend, **options)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("state_dtype", [torch.float32, torch.bfloat16])
def test_equals_reference(backend, random_tensor, assert_close, groups, dtype, state_dtype) -> None:
    inputs = _inputs(random_tensor, 3, groups, dtype)
    pool = random_tensor(3, 4, 6, 12, dtype=state_dtype)
    options = {
        "D": random_tensor(4),
        "z": random_tensor(3, 4, 6, dtype=dtype),
        "dt_bias": random_tensor(4),
        "dt_limit": (0.1, 2.0),
    }
    ours, reference = pool.clone(), pool.clone()
    assert_close(_step(backend, ours, inputs, **options), _step("reference", reference, inputs, **options), dtype)
    assert_close(ours, reference, state_dtype)
    plain, plain_reference = pool.clone(), pool.clone()
    assert_close(_step(backend, plain, inputs), _step("reference", plain_reference, inputs), dtype)


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_touches_only_listed_slots_of_a_strided_pool(backend, random_tensor, assert_close, index_dtype) -> None:
    inputs = _inputs(random_tensor, 4, 1, torch.float32)
    pages = random_tensor(7, 4 * 6 * 12 + 10)
    indices = torch.tensor([5, -1, 0, 3], dtype=index_dtype, device=pages.device)
    z = random_tensor(4, 4, 6)
    results = []
    for name in (backend, "reference"):
        own = pages.clone()
        state = own[:, : 4 * 6 * 12].unflatten(1, (4, 6, 12))
        results.append((_step(name, state, inputs, state_indices=indices, D=random_tensor(4, 6) * 0 + 1, z=z), own))
    (actual, ours), (expected, reference) = results
    assert_close(actual, expected)
    assert_close(ours, reference)
    assert torch.equal(ours[[1, 2, 4, 6]], pages[[1, 2, 4, 6]])
    assert torch.equal(ours[:, -10:], pages[:, -10:])
    assert not actual[1].any()


@pytest.mark.parametrize("groups", [1, 2])
def test_a_batch_of_padding_alone_changes_nothing(backend, random_tensor, groups) -> None:
    inputs = _inputs(random_tensor, 3, groups, torch.float32)
    pool = random_tensor(5, 4, 6, 12)
    state = pool.clone()
    out = _step(backend, state, inputs, state_indices=torch.full((3,), -1, dtype=torch.int32, device=pool.device))
    assert torch.equal(state, pool)
    assert not out.any()


def test_steps_equal_prefill(backend, scan_case, assert_close) -> None:
    case = scan_case((5,))
    x, dt, A, B, C = case.tensors
    whole = case.run("reference")
    state = case.options["initial_states"].clone()
    for t in range(5):
        row = slice(t, t + 1)
        out = m2.selective_state_update(state, x[row], dt[row], A, B[row], C[row], backend=backend)
        assert_close(out, whole.out[row])
    assert_close(state, whole.final_states)
