"""The gated RMSNorm."""

import mamba2_varlen as m2
import pytest
import torch


@pytest.mark.parametrize("group_size", [None, 8, 24])
@pytest.mark.parametrize("norm_before_gate", [True, False], ids=["norm-first", "gate-first"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equals_reference(backend, random_tensor, assert_close, group_size, norm_before_gate, dtype) -> None:
    x, z, weight = random_tensor(3, 5, 24, dtype=dtype), random_tensor(3, 5, 24, dtype=dtype), random_tensor(24)
    for gate in (z, None):
        options = {"z": gate, "group_size": group_size, "norm_before_gate": norm_before_gate, "eps": 1e-3}
        expected = m2.rms_norm_gated(x, weight, backend="reference", **options)
        assert_close(m2.rms_norm_gated(x, weight, backend=backend, **options), expected, dtype)


def test_reference_by_hand() -> None:
    out = m2.rms_norm_gated(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0]), eps=0.0, backend="reference")
    root = 12.5**0.5
    assert out.flatten().tolist() == pytest.approx([3.0 / root, 8.0 / root])
