"""Per-channel arguments that Mamba2 keeps equal within a head, brought back to one value per head."""

from torch import Tensor


def per_head(name: str, value: Tensor, head_dim: int) -> Tensor:
    """`value` with every dimension after `head_dim` dropped, for arguments expanded from one number per head.

    Raises ValueError when the values are not an expansion (a stride other than 0), as Mamba1 passes them.
    """
    extra = range(head_dim + 1, value.dim())
    if any(value.stride(dim) != 0 and value.shape[dim] != 1 for dim in extra):
        raise ValueError(f"{name} must be expanded from one value per head (stride 0), got strides {value.stride()}")
    for _ in extra:
        value = value[..., 0]
    return value
