"""The decode step of the scan: a few channels of one head of one row a program, the whole state row at once."""

import triton
import triton.language as tl
from torch import Tensor

from ..arguments import SsuArguments
from .gate import silu
from .launch import block_of, cdiv, launch, refuse_float64
from .step import step_size
from .tiles import tile_for


@triton.jit
def _ssu_kernel(
    state_ptr, x_ptr, dt_ptr, A_ptr, B_ptr, C_ptr, D_ptr, z_ptr, bias_ptr, slot_ptr, out_ptr,
    headdim, size, heads_per_group, slots, low, high,
    stride_s_b, stride_s_h, stride_s_p, stride_s_n, stride_x_b, stride_x_h, stride_x_p, stride_dt_b, stride_dt_h,
    stride_b_b, stride_b_g, stride_b_n, stride_c_b, stride_c_g, stride_c_n, stride_z_b, stride_z_h, stride_z_p,
    stride_out_b, stride_out_h, stride_out_p, stride_d_h, stride_d_p,
    SOFTPLUS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    group = head // heads_per_group
    channel = (tl.program_id(2) * BLOCK_P + tl.arange(0, BLOCK_P)).to(tl.int64)
    n = tl.arange(0, BLOCK_N).to(tl.int64)
    wide, deep = channel < headdim, n < size
    slot = row
    if slot_ptr is not None:
        slot = tl.load(slot_ptr + row).to(tl.int64)
    live = (slot >= 0) & (slot < slots)
    inside = wide[:, None] & deep[None, :] & live

    dt = tl.load(dt_ptr + row * stride_dt_b + head * stride_dt_h).to(tl.float32)
    bias = 0.0
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + head).to(tl.float32)
    dt = step_size(dt, bias, low, high, SOFTPLUS)
    decay = tl.exp(tl.load(A_ptr + head).to(tl.float32) * dt)
    x = tl.load(x_ptr + row * stride_x_b + head * stride_x_h + channel * stride_x_p, mask=wide, other=0.0).to(
        tl.float32
    )
    B = tl.load(B_ptr + row * stride_b_b + group * stride_b_g + n * stride_b_n, mask=deep, other=0.0).to(tl.float32)
    C = tl.load(C_ptr + row * stride_c_b + group * stride_c_g + n * stride_c_n, mask=deep, other=0.0).to(tl.float32)
    place = state_ptr + slot * stride_s_b + head * stride_s_h + channel[:, None] * stride_s_p + n[None, :] * stride_s_n
    state = tl.load(place, mask=inside, other=0.0).to(tl.float32)
    state = state * decay + (x * dt)[:, None] * B[None, :]
    tl.store(place, state.to(state_ptr.dtype.element_ty), mask=inside)

    out = tl.sum(state * C[None, :], axis=1)
    if D_ptr is not None:
        out += x * tl.load(D_ptr + head * stride_d_h + channel * stride_d_p, mask=wide, other=0.0).to(tl.float32)
    if z_ptr is not None:
        z = tl.load(z_ptr + row * stride_z_b + head * stride_z_h + channel * stride_z_p, mask=wide, other=0.0).to(
            tl.float32
        )
        out *= silu(z)
    out = tl.where(live, out, 0.0)
    target = out_ptr + row * stride_out_b + head * stride_out_h + channel * stride_out_p
    tl.store(target, out.to(out_ptr.dtype.element_ty), mask=wide)


def selective_state_update(arguments: SsuArguments) -> Tensor:
    """See `mamba2_varlen.selective_state_update`."""
    state, x, dt, out = arguments.state, arguments.x, arguments.dt, arguments.out
    B, C, D, z, bias = arguments.B, arguments.C, arguments.D, arguments.z, arguments.step.bias
    refuse_float64(x)
    rows, heads, headdim = x.shape
    size = B.shape[2]
    indices = arguments.state_indices
    z_strides = (0, 0, 0) if z is None else z.stride()
    d_strides = (0, 0) if D is None else (D.stride(0), D.stride(1) if D.dim() == 2 else 0)
    launch(
        "ssu",
        _ssu_kernel,
        lambda blocks: (rows, heads, cdiv(headdim, blocks["BLOCK_P"])),
        tile_for("ssu", state.element_size()),
        state_ptr=state, x_ptr=x, dt_ptr=dt, A_ptr=arguments.A.contiguous(), B_ptr=B, C_ptr=C, D_ptr=D, z_ptr=z,
        bias_ptr=None if bias is None else bias.contiguous(),
        slot_ptr=None if indices is None else indices.contiguous(),
        out_ptr=out, headdim=headdim, size=size, heads_per_group=heads // B.shape[1], slots=state.shape[0],
        low=float(arguments.step.limit[0]), high=float(arguments.step.limit[1]),
        stride_s_b=state.stride(0), stride_s_h=state.stride(1), stride_s_p=state.stride(2), stride_s_n=state.stride(3),
        stride_x_b=x.stride(0), stride_x_h=x.stride(1), stride_x_p=x.stride(2),
        stride_dt_b=dt.stride(0), stride_dt_h=dt.stride(1),
        stride_b_b=B.stride(0), stride_b_g=B.stride(1), stride_b_n=B.stride(2),
        stride_c_b=C.stride(0), stride_c_g=C.stride(1), stride_c_n=C.stride(2),
        stride_z_b=z_strides[0], stride_z_h=z_strides[1], stride_z_p=z_strides[2],
        stride_out_b=out.stride(0), stride_out_h=out.stride(1), stride_out_p=out.stride(2),
        stride_d_h=d_strides[0], stride_d_p=d_strides[1],
        SOFTPLUS=arguments.step.softplus, BLOCK_N=block_of(size),
    )  # fmt: skip
    return out
