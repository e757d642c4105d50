"""The scan's inputs laid out piece by piece, a group of heads at a time, in the dtype of computing, with the factors that the
scan needs of them."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from ..arguments import SsdArguments
from ..waves import WaveGrid
from .step import compute_dtype, step_size

# A head is gentle in a piece that decays by no more than e to this. To scale by a number and later by its inverse rounds
# like any other product while neither nears the end of float32, which lies at e to the 88. What decays further counts as
# decayed that far, 1e-26: next to anything else it is nothing, and a core takes a hundred times as long for the denormal
# numbers that lie beyond.
GENTLE_EXPONENT = 60.0


@dataclass(frozen=True)
class Pieces:
    """k pieces of `rows` rows of the H heads that share one group's B and C.

    decay is the running sum of A dt from the piece's start through each row, so never above 0. Rows past a sequence's
    end have dt 0: they add nothing and decay nothing.

    Attributes:
        x: (k, rows, H, P).
        dt, decay: (k, H, rows).
        B: (k, rows, N).
        seen: (k, rows, N + rows), C beside its scores C . B with the rows up to each: what a row makes of the state that
            entered its piece, and of the rows before it.
        leaving: (k, rows, H, 1), what the piece's end has of x: its step, decayed from its row on.
        growth: (k, rows, H, 1), the inverse of the decay from a row to the piece's end, at most e^GENTLE_EXPONENT.
        total: (k, 1, H, 1), the decay over the whole piece.
        steep: (k, H) bool, where total is too small to be divided by.
        ordinal: (k) int64, place of a piece within its sequence.
        skip: D as (H, P), or None.
    """

    x: Tensor
    dt: Tensor
    decay: Tensor
    B: Tensor
    seen: Tensor
    leaving: Tensor
    growth: Tensor
    total: Tensor
    steep: Tensor
    ordinal: Tensor
    skip: Tensor | None

    @property
    def rows(self) -> int:
        return self.x.shape[1]

    @property
    def heads(self) -> int:
        return self.x.shape[2]

    @property
    def state_size(self) -> int:
        """N."""
        return self.B.shape[2]

    @property
    def width(self) -> int:
        """H * P: a group's heads side by side, for one product with its B or C."""
        return self.x.shape[2] * self.x.shape[3]

    def narrow(self, start: int, length: int) -> Self:
        """Pieces from `start` on."""
        end = start + length
        fields = {name: getattr(self, name)[start:end] for name in _BY_PIECE}
        return replace(self, **fields)


_BY_PIECE = ("x", "dt", "decay", "B", "seen", "leaving", "growth", "total", "steep", "ordinal")


def lay_out(arguments: SsdArguments, grid: WaveGrid) -> list[Pieces]:
    """All pieces of the batch, group by group, as views of the inputs where the layout allows it."""
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
    x, B, C = by_piece(arguments.x), by_piece(arguments.B), by_piece(arguments.C)
    skip = None if arguments.D is None else _by_channel(arguments.D.to(dtype), x.shape[3])
    per_group = x.shape[2] // B.shape[2]
    pieces = []
    for group in range(B.shape[2]):
        heads = slice(group * per_group, (group + 1) * per_group)
        own = None if skip is None else skip[heads]
        pieces.append(
            _of_group(x[:, :, heads], dt[:, heads], decay[:, heads], B[:, :, group], C[:, :, group], grid, own)
        )
    return pieces


def _of_group(
    x: Tensor, dt: Tensor, decay: Tensor, B: Tensor, C: Tensor, grid: WaveGrid, skip: Tensor | None
) -> Pieces:
    by_row = remaining(decay[:, :, -1:] - decay).transpose(1, 2).unsqueeze(-1)
    scores = torch.bmm(C, B.transpose(1, 2)).tril_()
    return Pieces(
        x=x,
        dt=dt,
        decay=decay,
        B=B,
        seen=torch.cat((C, scores), dim=2),
        leaving=by_row * dt.transpose(1, 2).unsqueeze(-1),
        growth=by_row.reciprocal(),
        total=remaining(decay[:, :, -1].clone())[:, None, :, None],
        steep=decay[:, :, -1] < -GENTLE_EXPONENT,
        ordinal=grid.ordinal,
        skip=skip,
    )


def remaining(exponent: Tensor) -> Tensor:
    """e to the exponent, in its place: what is left after that decay. Rounding can put an exponent above 0."""
    return exponent.clamp_(-GENTLE_EXPONENT, 0.0).exp_()


def _by_channel(D: Tensor, headdim: int) -> Tensor:
    """D (H) or (H, P) as (H, P), written out: a factor that all of P shares would have no vector path."""
    return D.reshape(D.shape[0], -1).expand(-1, headdim).contiguous()
