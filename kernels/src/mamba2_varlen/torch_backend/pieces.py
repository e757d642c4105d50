"""The scan's inputs laid out piece by piece, in the dtype of computing. Layout only: the mathematics is in ssd.py."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..arguments import SsdArguments
from ..waves import WaveGrid
from .step import compute_dtype, step_size


@dataclass(frozen=True)
class Pieces:
    """k pieces of `rows` rows: x (k, rows, H, P), dt and decay (k, H, rows), B and C (k, G, rows, N).

    decay is the running sum of A dt from the piece's start through each row, so never above 0. Rows past a sequence's
    end have dt 0: they add nothing and decay nothing. skip is D as (H, 1) or (H, P).
    """

    x: Tensor
    dt: Tensor
    decay: Tensor
    B: Tensor
    C: Tensor
    ordinal: Tensor
    skip: Tensor | None

    @property
    def count(self) -> int:
        return self.x.shape[0]

    @property
    def rows(self) -> int:
        return self.x.shape[1]

    @property
    def groups(self) -> int:
        return self.B.shape[1]

    @property
    def elements(self) -> int:
        """Elements of x in one piece."""
        return self.x[0].numel() if self.count else 1

    def narrow(self, start: int, end: int) -> "Pieces":
        """The pieces from start to end."""
        fields = (self.x, self.dt, self.decay, self.B, self.C, self.ordinal)
        return Pieces(*(field[start:end] for field in fields), skip=self.skip)

    def grouped(self, per_head: Tensor) -> Tensor:
        """(k, rows, H, P) as (k, G, rows, H/G * P): a group's heads side by side, for one product with its B or C."""
        return per_head.unflatten(2, (self.groups, -1)).flatten(3).transpose(1, 2)

    def ungrouped(self, per_group: Tensor) -> Tensor:
        """The inverse of `grouped`."""
        return per_group.transpose(1, 2).unflatten(3, (-1, self.x.shape[3])).flatten(2, 3)


def lay_out(arguments: SsdArguments, grid: WaveGrid) -> Pieces:
    """All pieces of the batch, as views of the inputs where the layout allows it."""
    dtype = compute_dtype(arguments.x)

    def by_piece(tensor: Tensor) -> Tensor:
        if grid.token_index is not None:
            tensor = tensor.index_select(0, grid.token_index)
        return tensor.to(dtype).unflatten(0, (-1, grid.rows))

    dt = by_piece(step_size(arguments.dt, arguments.step, dtype))
    if grid.valid is not None:
        dt = dt * grid.valid.unsqueeze(-1)
    dt = dt.transpose(1, 2).contiguous()
    decay = torch.cumsum(dt * arguments.A.to(dtype).unsqueeze(-1), dim=2)
    return Pieces(
        x=by_piece(arguments.x),
        dt=dt,
        decay=decay,
        B=by_piece(arguments.B).transpose(1, 2),
        C=by_piece(arguments.C).transpose(1, 2),
        ordinal=grid.ordinal,
        skip=None if arguments.D is None else arguments.D.to(dtype).reshape(arguments.D.shape[0], -1),
    )
