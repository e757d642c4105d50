"""Facts about the one object all layers share."""

from itertools import pairwise

import mamba2_varlen as m2
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st


def test_chunks_and_programs_by_hand() -> None:
    metadata = m2.build_metadata(torch.tensor([0, 40, 40, 73]), chunk_size=32)
    assert metadata.cu_chunk_seqlens.tolist() == [0, 32, 40, 72, 73]
    assert metadata.chunk_to_sequence.tolist() == [0, 0, 2, 2]
    assert metadata.first_chunk_of_sequence.tolist() == [0, 2, 2]
    assert metadata.last_chunk_of_sequence.tolist() == [1, 1, 3]
    assert metadata.longest_first.tolist() == [0, 2, 1]
    assert metadata.conv_sequence.tolist() == [0, 1, 2]
    assert metadata.conv_tile.tolist() == [0, 0, 0]
    assert (metadata.tokens, metadata.lengths, metadata.sequences, metadata.chunks) == (73, (40, 0, 33), 3, 4)
    assert metadata.cu_seqlens.dtype == torch.int32


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 150), max_size=8), st.sampled_from([1, 4, 16, 64, 128]))
def test_chunks_cover_every_token_once_and_never_span_sequences(lengths: list[int], chunk_size: int) -> None:
    cu_seqlens = [sum(lengths[:count]) for count in range(len(lengths) + 1)]
    metadata = m2.build_metadata(cu_seqlens, chunk_size=chunk_size)
    starts = metadata.cu_chunk_seqlens.tolist()
    assert starts[0] == 0
    assert starts[-1] == cu_seqlens[-1]
    for chunk, sequence in enumerate(metadata.chunk_to_sequence.tolist()):
        assert 0 < starts[chunk + 1] - starts[chunk] <= chunk_size
        assert cu_seqlens[sequence] <= starts[chunk]
        assert starts[chunk + 1] <= cu_seqlens[sequence + 1]
        assert (starts[chunk] - cu_seqlens[sequence]) % chunk_size == 0


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 150), max_size=8), st.sampled_from([1, 4, 64, 128]))
def test_waves_hold_every_token_once_in_order(lengths: list[int], chunk_size: int) -> None:
    cu_seqlens = [sum(lengths[:count]) for count in range(len(lengths) + 1)]
    grid = m2.build_metadata(cu_seqlens, chunk_size=chunk_size).waves
    if grid.row_of_token is not None and grid.token_index is not None:
        assert grid.token_index[grid.row_of_token].tolist() == list(range(cu_seqlens[-1]))
    bounds = grid.wave_bounds
    widths = [end - start for start, end in pairwise(bounds)]
    assert widths == sorted(widths, reverse=True)
    for wave, (start, end) in enumerate(pairwise(bounds)):
        assert set(grid.ordinal[start:end].tolist()) == {wave}


def test_waves_are_made_once() -> None:
    metadata = m2.build_metadata([0, 5], chunk_size=4)
    assert metadata.waves is metadata.waves


@pytest.mark.parametrize(
    ("cu_seqlens", "error", "words"),
    [
        ([1, 5], ValueError, ["cu_seqlens", "start at 0", "1"]),
        ([0, 7, 5], ValueError, ["cu_seqlens", "decrease", "7", "5"]),
        ([], ValueError, ["cu_seqlens", "empty"]),
        (torch.tensor([0.0, 1.0]), TypeError, ["cu_seqlens", "float32"]),
        (torch.tensor([[0, 1]]), ValueError, ["cu_seqlens", "(1, 2)"]),
    ],
)
def test_refuses_bad_boundaries(cu_seqlens: object, error: type[Exception], words: list[str]) -> None:
    with pytest.raises(error) as caught:
        m2.build_metadata(cu_seqlens, chunk_size=4)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("chunk_size", [0, -4, 3, 100])
def test_refuses_chunk_sizes_that_are_no_power_of_two(chunk_size: int) -> None:
    with pytest.raises(ValueError, match=f"chunk_size must be a power of two, got {chunk_size}"):
        m2.build_metadata([0, 1], chunk_size=chunk_size)
