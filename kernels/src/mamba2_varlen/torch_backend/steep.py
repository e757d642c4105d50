"""Heads that decay too far within a piece for a factor of one row and one of another: their weights, one by one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .pieces import Pieces, remaining
from .scratch import Scratch

# Rows computed at once. A tile skips the columns that lie after its last row, and its weights stay in cache.
ROW_TILE = 16


@dataclass(frozen=True)
class SteepHeads:
    """h heads of k pieces of a wave.

    Attributes:
        heads: (h) int64, or None if they are all the wave's.
        states: (k, N, h*P), those that enter the wave, taken before it decays them.
        x: (k, rows, h, P).
        dt, decay: (k, h, rows).
    """

    wave: Pieces
    heads: Tensor | None
    states: Tensor
    x: Tensor
    dt: Tensor
    decay: Tensor

    def write(self, y: Tensor, scratch: Scratch) -> None:
        """These heads' outputs into y (k, rows, H, P)."""
        C = self.wave.seen[:, :, : self.wave.state_size]
        carried = torch.bmm(C, self.states).unflatten(2, (-1, y.shape[3]))
        for first in range(0, self.wave.rows, ROW_TILE):
            rows = slice(first, min(first + ROW_TILE, self.wave.rows))
            decay = self._carried_decay(rows).transpose(1, 2).unsqueeze(-1)
            out = carried[:, rows].mul_(decay).add_(self._within_piece(rows, scratch).transpose(1, 2))
            if self.heads is None:
                y[:, rows] = out
            else:
                y[:, rows].index_copy_(2, self.heads, out)

    def _within_piece(self, rows: slice, scratch: Scratch) -> Tensor:
        """(k, h, tile, P): rows' outputs from the rows of their own piece up to themselves.

        Scores are zero after the diagonal, so a weight there is zero too.
        """
        size = self.wave.state_size
        weights = remaining(self.decay[:, :, rows, None] - self.decay[:, :, None, : rows.stop])
        weights.mul_(self.wave.seen[:, None, rows, size : size + rows.stop]).mul_(self.dt[:, :, None, : rows.stop])
        inside = scratch.view("inside", *weights.shape[:3], self.x.shape[3])
        for piece in range(self.x.shape[0]):
            # Piece by piece, since only then can x stay where it lies: heads and rows of one piece are plain strides.
            torch.bmm(weights[piece], self.x[piece, : rows.stop].transpose(0, 1), out=inside[piece])
        return inside

    def _carried_decay(self, rows: slice) -> Tensor:
        """(k, h, tile): what is left at each row of the state that entered the piece, from the piece's start on."""
        return remaining(self.decay[:, :, rows].clone())


def steep_heads(wave: Pieces, states: Tensor) -> SteepHeads | None:
    """The heads of a wave that need weights of their own, all of them if most do; None if none does.

    states: (k, N, H*P), those that enter the wave. On a GPU nothing is looked at, since to look would mean to wait.
    """
    if states.device.type == "cpu":
        heads = wave.steep.any(0).nonzero().squeeze(1)
        if heads.numel() == 0:
            return None
        if heads.numel() <= wave.heads // 2:
            own = states.unflatten(2, (wave.heads, -1)).index_select(2, heads).flatten(2)
            x, dt, decay = wave.x.index_select(2, heads), wave.dt[:, heads], wave.decay[:, heads]
            return SteepHeads(wave, heads, own, x, dt, decay)
    return SteepHeads(wave, None, states.clone(), wave.x, wave.dt, wave.decay)
