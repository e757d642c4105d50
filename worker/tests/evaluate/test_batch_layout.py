"""Packing real tokens out of padding, and back."""

import mamba2_varlen
import pytest
import torch
from driftline_worker.children.hf_engine.batch_layout import build_layout

TOKENS = torch.arange(12).view(3, 4)
MASKS = {
    "left": ([[0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]], (2, 4, 0), [2, 3, 4, 5, 6, 7]),
    "right": ([[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]], (2, 4, 1), [0, 1, 4, 5, 6, 7, 8]),
}


@pytest.mark.parametrize("side", MASKS)
@pytest.mark.parametrize("seen", [0, 3], ids=["first chunk", "later chunk"])
def test_real_tokens_are_packed_row_after_row(side: str, seen: int) -> None:
    mask, lengths, packed = MASKS[side]
    grown = torch.cat([torch.ones(3, seen, dtype=torch.long), torch.tensor(mask)], dim=1)
    layout = build_layout(TOKENS, grown, mamba2_varlen, 16)
    assert layout.lengths == lengths
    assert layout.pack(TOKENS).tolist() == packed
    assert layout.metadata.lengths == lengths


def test_unpacking_puts_zeros_into_padding() -> None:
    layout = build_layout(TOKENS, torch.tensor(MASKS["left"][0]), mamba2_varlen, 16)
    values = torch.randn(3, 4, 2)
    expected = values * torch.tensor(MASKS["left"][0])[..., None]
    assert torch.equal(layout.unpack(layout.pack(values)), expected)


@pytest.mark.parametrize("mask", [None, torch.ones(3, 9)], ids=["no mask", "all real"])
def test_without_padding_nothing_is_moved(mask: torch.Tensor | None) -> None:
    layout = build_layout(TOKENS, mask, mamba2_varlen, 16)
    assert layout.index is None
    assert layout.lengths == (4, 4, 4)
    assert layout.pack(TOKENS).data_ptr() == TOKENS.data_ptr()
