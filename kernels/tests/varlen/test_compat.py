"""Other projects' signatures give the same numbers as ours."""

import mamba2_varlen as m2
import pytest
import torch
from mamba2_varlen.compat import mamba_ssm, vllm


def test_vllm_scan(scan_case, assert_close) -> None:
    case = scan_case((40, 17))
    expected = case.run("reference", return_intermediate_states=True)
    x, dt, A, B, C = case.tensors
    metadata = m2.build_metadata([0, 40, 57], chunk_size=32, device=x.device)
    out = torch.full_like(x, torch.nan)
    grid = (metadata.cu_seqlens, metadata.cu_chunk_seqlens, metadata.last_chunk_of_sequence, metadata.chunk_to_sequence)
    final = vllm.mamba_chunk_scan_combined_varlen(x, dt, A, B, C, 32, *grid, out, **case.options)
    assert_close(out, expected.out)
    assert_close(final, expected.final_states)
    every = vllm.mamba_chunk_scan_combined_varlen(
        x, dt, A, B, C, 32, *grid, out, return_intermediate_states=True, **case.options
    )
    assert_close(every, expected.intermediate_states)
    other = torch.tensor([0, 8, 40, 57], dtype=torch.int32, device=x.device)
    with pytest.raises(ValueError, match=r"cu_chunk_seqlens must .*\[0, 32, 40, 57\], got \[0, 8, 40, 57\]"):
        vllm.mamba_chunk_scan_combined_varlen(
            x, dt, A, B, C, 32, grid[0], other, *grid[2:], out, return_intermediate_states=True
        )


def test_vllm_convolution_reads_and_writes_its_slots(random_tensor, assert_close) -> None:
    x, weight, pool = random_tensor(9, 12), random_tensor(9, 4), random_tensor(5, 9, 3)
    before = pool.clone()
    starts = torch.tensor([0, 5, 11, 12], dtype=torch.int32, device=x.device)
    slots = torch.tensor([3, 0, -1], dtype=torch.int32, device=x.device)
    known = torch.tensor([True, False, True], device=x.device)
    out = vllm.causal_conv1d_fn(x, weight, None, pool, starts, slots, known)
    initial = torch.stack([before[3], torch.zeros_like(before[0]), torch.zeros_like(before[0])])
    metadata = m2.build_metadata(starts, chunk_size=1)
    expected = m2.causal_conv1d_prefill(
        x.T, weight, metadata=metadata, initial_states=initial, activation="silu", backend="reference"
    )
    assert_close(out.T, expected.out)
    assert torch.equal(pool[[3, 0]], expected.final_states[:2])
    assert torch.equal(pool[[1, 2, 4]], before[[1, 2, 4]])


def test_vllm_decode_steps(random_tensor, assert_close) -> None:
    x, dt, A = random_tensor(3, 4, 6), random_tensor(3, 4), -random_tensor(4).abs()
    B, C = random_tensor(2, 3, 1, 8)
    state = random_tensor(3, 4, 6, 8)
    ours = state.clone()
    wide_dt, wide_A = dt[..., None].expand(3, 4, 6), A[:, None, None].expand(4, 6, 8)
    out = vllm.selective_state_update(ours, x, wide_dt, wide_A, B, C, dt_softplus=True)
    expected = m2.selective_state_update(state, x, dt, A, B, C, dt_softplus=True, backend="reference")
    assert_close(out, expected)
    assert_close(ours, state)
    with pytest.raises(ValueError, match="A must be expanded from one value per head"):
        vllm.selective_state_update(ours, x, wide_dt, wide_A.contiguous(), B, C)
    weight, pool = random_tensor(9, 4), random_tensor(2, 9, 3)
    same = pool.clone()
    row = random_tensor(2, 9)
    assert_close(
        vllm.causal_conv1d_update(row[..., None], pool, weight, activation=True)[..., 0],
        m2.causal_conv1d_update(row, same, weight, activation="silu", backend="reference"),
    )
    assert torch.equal(pool, same)


def test_mamba_ssm_scan_and_norm(scan_case, random_tensor, assert_close) -> None:
    case = scan_case((20, 20))
    x, dt, A, B, C = case.tensors
    batched = [tensor.unflatten(0, (2, 20)) for tensor in (x, dt, B, C)]
    out, final = mamba_ssm.mamba_chunk_scan_combined(
        *batched[:2], A, *batched[2:], 16, return_final_states=True, **case.options
    )
    expected = case.run("reference")
    assert_close(out.flatten(0, 1), expected.out)
    assert_close(final, expected.final_states)
    rows, weight, z = random_tensor(3, 8), random_tensor(8), random_tensor(3, 8)
    assert_close(
        mamba_ssm.rmsnorm_fn(rows, weight, z=z, eps=1e-5),
        m2.rms_norm_gated(rows, weight, z=z, norm_before_gate=True, backend="reference"),
    )
