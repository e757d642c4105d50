"""The causal convolution, prefill and decode step."""

from typing import Any

import mamba2_varlen as m2
import pytest
import torch
from torch import Tensor


def _prefill(backend: str, lengths: tuple[int, ...], x: Tensor, weight: Tensor, **options: Any) -> m2.ConvResult:
    cu_seqlens = [sum(lengths[:count]) for count in range(len(lengths) + 1)]
    metadata = m2.build_metadata(cu_seqlens, chunk_size=64, device=x.device)
    out = torch.full_like(x, torch.nan)
    return m2.causal_conv1d_prefill(x, weight, metadata=metadata, out=out, backend=backend, **options)


@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("lengths", [(1,), (40,), (1, 2, 3, 5), (17, 0, 33), (0,)], ids=str)
@pytest.mark.parametrize("full", [True, False], ids=["carried", "plain"])
def test_prefill_equals_reference(backend, random_tensor, assert_close, width, lengths, full) -> None:
    x, weight = random_tensor(sum(lengths), 10), random_tensor(10, width)
    options: dict[str, Any] = {}
    if full:
        options = {
            "bias": random_tensor(10),
            "initial_states": random_tensor(len(lengths), 10, width - 1),
            "activation": "silu",
        }
    expected, actual = (_prefill(name, lengths, x, weight, **options) for name in ("reference", backend))
    assert_close(actual.out, expected.out)
    assert torch.equal(actual.final_states, expected.final_states)


def test_reference_is_the_sum_by_hand() -> None:
    x, weight = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([[10.0, 1.0]])
    result = _prefill("reference", (2, 1), x, weight, initial_states=torch.tensor([[[5.0]], [[7.0]]]))
    assert result.out.flatten().tolist() == [51.0, 12.0, 73.0]
    assert result.final_states.flatten().tolist() == [2.0, 3.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_prefill_layouts_and_dtypes(backend, random_tensor, assert_close, dtype) -> None:
    lengths, weight, wide = (20, 13), random_tensor(12, 4), random_tensor(33, 30, dtype=dtype)
    expected = _prefill("reference", lengths, wide[:, 3:15], weight, activation="swish")
    by_channel = wide[:, 3:15].T.contiguous().T
    for x in (wide[:, 3:15], by_channel):
        actual = _prefill(backend, lengths, x, weight, activation="swish")
        assert_close(actual.out, expected.out, dtype)
        assert torch.equal(actual.final_states, expected.final_states)


@pytest.mark.parametrize("split", [1, 2, 3, 20])
def test_two_prefills_equal_one(backend, random_tensor, assert_close, split) -> None:
    x, weight = random_tensor(30, 8), random_tensor(8, 4)
    whole = _prefill(backend, (30,), x, weight)
    first = _prefill(backend, (split,), x[:split], weight)
    second = _prefill(backend, (30 - split,), x[split:], weight, initial_states=first.final_states)
    assert_close(torch.cat([first.out, second.out]), whole.out)
    assert torch.equal(second.final_states, whole.final_states)


@pytest.mark.parametrize("width", [2, 3, 4])
def test_updates_equal_prefill(backend, random_tensor, assert_close, width) -> None:
    x, weight, bias = random_tensor(6, 9), random_tensor(9, width), random_tensor(9)
    whole = _prefill("reference", (6,), x, weight, bias=bias, activation="silu")
    state = torch.zeros(1, 9, width - 1, device=x.device)
    rows = [
        m2.causal_conv1d_update(x[t : t + 1], state, weight, bias, activation="silu", backend=backend) for t in range(6)
    ]
    assert_close(torch.cat(rows), whole.out)
    assert torch.equal(state, whole.final_states)


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_update_touches_only_listed_slots(backend, random_tensor, assert_close, index_dtype) -> None:
    x, weight = random_tensor(4, 9), random_tensor(9, 4)
    pool = random_tensor(7, 9, 5)[..., 1:4]
    indices = torch.tensor([5, -1, 0, 3], dtype=index_dtype, device=x.device)
    ours, reference = pool.clone(), pool.clone()
    actual = m2.causal_conv1d_update(x, ours, weight, state_indices=indices, backend=backend)
    expected = m2.causal_conv1d_update(x, reference, weight, state_indices=indices, backend="reference")
    assert_close(actual, expected)
    assert torch.equal(ours, reference)
    assert torch.equal(ours[[1, 2, 4, 6]], pool[[1, 2, 4, 6]])
    assert not actual[1].any()
