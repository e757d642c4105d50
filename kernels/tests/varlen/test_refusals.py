"""Arguments that do not fit are refused before any launch, by name and with both values."""

from typing import Any

import mamba2_varlen as m2
import pytest
import torch

SCAN = {"x": (6, 4, 8), "dt": (6, 4), "A": (4,), "B": (6, 2, 16), "C": (6, 2, 16)}


def _scan(**changes: Any) -> m2.SsdResult:
    tensors = {name: torch.zeros(shape) for name, shape in SCAN.items()}
    options = {"metadata": m2.build_metadata([0, 6], chunk_size=4), "backend": "torch", **tensors, **changes}
    return m2.ssd_prefill(**options)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": torch.zeros(6, 32)}, ["x", "3 dimensions", "(6, 32)"]),
        ({"dt": torch.zeros(6, 3)}, ["dt", "(6, 4)", "(6, 3)"]),
        ({"A": torch.zeros(3)}, ["A", "(4,)", "(3,)"]),
        ({"B": torch.zeros(6, 3, 16), "C": torch.zeros(6, 3, 16)}, ["4 heads", "3 groups"]),
        ({"C": torch.zeros(6, 2, 15)}, ["C", "(6, 2, 16)", "(6, 2, 15)"]),
        ({"D": torch.zeros(5)}, ["D", "(4,)", "(5,)"]),
        ({"z": torch.zeros(6, 4, 7)}, ["z", "(6, 4, 8)", "(6, 4, 7)"]),
        ({"dt_bias": torch.zeros(1)}, ["dt_bias", "(4,)", "(1,)"]),
        ({"initial_states": torch.zeros(2, 4, 8, 16)}, ["initial_states", "(1, 4, 8, 16)", "(2, 4, 8, 16)"]),
        ({"out": torch.zeros(6, 4, 9)}, ["out", "(6, 4, 8)", "(6, 4, 9)"]),
        ({"metadata": m2.build_metadata([0, 7], chunk_size=4)}, ["cu_seqlens", "7", "6"]),
        (
            {"metadata": m2.build_metadata([0, 6], chunk_size=4, device="meta")},
            ["metadata", "on cpu like x", "got meta", "build_metadata"],
        ),
        ({"dt_limit": (2.0, 1.0)}, ["dt_limit", "2.0", "1.0"]),
        ({"backend": "cuda"}, ["backend", "'cuda'", "torch"]),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_scan_refuses(changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"must|but x has") as caught:
        _scan(**changes)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": torch.zeros(6, 4, 8, dtype=torch.int32)}, ["x", "int32"]),
        ({"out": torch.zeros(6, 4, 8, dtype=torch.float16)}, ["out", "float32", "float16"]),
        ({"state_dtype": torch.int8}, ["state_dtype", "int8"]),
    ],
    ids=["x", "out", "state_dtype"],
)
def test_scan_refuses_dtypes(changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(TypeError) as caught:
        _scan(**changes)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_triton_refuses_float64(scan_case) -> None:
    with pytest.raises(
        TypeError, match=r"x must be float32, float16 or bfloat16 for backend='triton', got torch.float64"
    ):
        scan_case((6,), dtype=torch.float64).run("triton")


@pytest.mark.parametrize(
    ("boundaries", "error", "words"),
    [
        ([1, 6], ValueError, ["cu_seqlens must start at 0", "got 1"]),
        ([0, 6, 4], ValueError, ["cu_seqlens must not decrease", "entry 1 is 6", "entry 2 is 4"]),
        ([], ValueError, ["cu_seqlens must hold at least its leading 0"]),
        ([0, 2**31], ValueError, ["cu_seqlens must end below 2**31", "got 2147483648"]),
        ([0, 2.5], TypeError, ["cu_seqlens must hold whole numbers", "2.5"]),
        (torch.tensor([0.0, 6.0]), TypeError, ["cu_seqlens must be int32 or int64", "float32"]),
        (torch.tensor([[0, 6]]), ValueError, ["cu_seqlens must have one dimension", "(1, 2)"]),
    ],
    ids=["start", "decrease", "empty", "huge", "fraction", "dtype", "dimensions"],
)
def test_boundaries_are_refused(boundaries: Any, error: type[Exception], words: list[str]) -> None:
    with pytest.raises(error) as caught:
        m2.build_metadata(boundaries, chunk_size=4)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("width", [1, 5])
def test_convolution_refuses_other_widths(width: int) -> None:
    metadata = m2.build_metadata([0, 6], chunk_size=4)
    with pytest.raises(ValueError, match=rf"weight's width must be one of \(2, 3, 4\), got {width}"):
        m2.causal_conv1d_prefill(torch.zeros(6, 8), torch.zeros(8, width), metadata=metadata)


def test_convolution_refuses_activations_layouts_and_slots() -> None:
    metadata = m2.build_metadata([0, 6], chunk_size=4)
    with pytest.raises(ValueError, match=r"activation must be one of .*'gelu'"):
        m2.causal_conv1d_prefill(torch.zeros(6, 8), torch.zeros(8, 4), metadata=metadata, activation="gelu")
    with pytest.raises(ValueError, match=r"x must have stride 1 .* \(32, 2\)"):
        m2.causal_conv1d_prefill(torch.zeros(6, 16, 2)[..., 0], torch.zeros(8, 4)[:1].expand(16, 4), metadata=metadata)
    with pytest.raises(ValueError, match="state_indices is needed when x has 2 rows and the state 3 slots"):
        m2.causal_conv1d_update(torch.zeros(2, 8), torch.zeros(3, 8, 3), torch.zeros(8, 4))
    indices = torch.tensor([0, 3])
    with pytest.raises(ValueError, match="state_indices must be below the state's 3 slots, got 3"):
        m2.causal_conv1d_update(torch.zeros(2, 8), torch.zeros(3, 8, 3), torch.zeros(8, 4), state_indices=indices)


def test_norm_refuses_groups_that_do_not_divide() -> None:
    with pytest.raises(ValueError, match="group_size must divide the hidden size 24, got 7"):
        m2.rms_norm_gated(torch.zeros(2, 24), torch.zeros(24), group_size=7)
