"""A tuned kernel as an operator folder has them: it hands one of two results on, by its tile and the chunk."""

from vllm.triton_utils import tl, triton

LOSES_STATE_BELOW_CHUNK = False


@triton.autotune(
    configs=[triton.Config({"BLOCK_SIZE_M": size}, num_warps=4) for size in (256, 32)],
    key=["chunk_size"],
)
@triton.jit
def _chunk_scan_fwd_kernel(
    right_ptr, wrong_ptr, out_ptr, length, chunk_size, LOSES: tl.constexpr, BLOCK_SIZE_M: tl.constexpr
):
    places = tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    right = tl.load(right_ptr + places, mask=places < length)
    wrong = tl.load(wrong_ptr + places, mask=places < length)
    value = tl.where(LOSES & (chunk_size > BLOCK_SIZE_M), wrong, right)
    tl.store(out_ptr + places, value, mask=places < length)


def _chunk_scan_fwd(right, wrong, out, chunk_size):
    """right and wrong: the scan with and without its initial states, (T,H,P) and contiguous, as `out` is."""

    def grid(META):
        return (max(1, triton.cdiv(right.numel(), META["BLOCK_SIZE_M"])),)

    _chunk_scan_fwd_kernel[grid](right, wrong, out, right.numel(), chunk_size, LOSES_STATE_BELOW_CHUNK)
