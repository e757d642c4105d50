"""How the walk runs a call: whether at all, with which tile, and in how many segments its long sequences are cut.

Decided on the host from lengths, sizes and the GPU's multiprocessors alone, never from activations or a timing.
"""

from dataclasses import dataclass
from functools import cache, lru_cache

import torch

from ..arguments import SsdArguments
from .launch import cdiv
from .tiles import CANDIDATES, Tile, is_pinned, tile_for

# Programs that fit on a multiprocessor at once, by registers: with the first candidate and with the second, which is
# capped. A program then takes about so much longer, so the cap pays where it saves whole waves of programs. Measured on an
# H200 (132 multiprocessors): 384 programs 0.149 ms without and 0.115 ms with the cap, 1,536 0.441 and 0.423, 4,096 1.19 and
# 1.13; but 192 programs 1.07 and 1.22, 512 2.23 and 2.76, 1,024 0.306 and 0.320.
PROGRAMS_AT_ONCE, PROGRAMS_AT_ONCE_CAPPED, CAPPED_TIME = 2, 3, 1.45

# On an H200 a program takes so long for a token (16,384 tokens in 1.07 ms), and the five stages for a token of one head when
# the GPU is full (65,536 of 48 heads in 3.08 ms).
WALK_NS, STAGES_NS = 65.0, 0.98

# Cutting costs one more launch, and for every token and head before a sequence's last segment the state it
# leaves (H200: 32,768 tokens of 48 heads in 0.128 ms).
PIECE_NS, CUT_NS = 0.08, 10_000.0
# Segments tried for the longest sequence, and the pieces that the states before a segment are found by.
SEGMENTS, PIECES_A_SEGMENT = (2, 3, 4, 6, 8, 12, 16), 2
# A cut must save at least this part of the time, and its states need at most as many bytes as x.
LEAST_GAIN, STATE_BYTES, INPUT_BYTES = 0.05, 4, 2
# Segments and pieces are multiples of so many tokens, so that any tile nests in them.
ALIGNMENT = 128

SIZED_ON = 132
"""Multiprocessors of the GPU that the times above are from; they shrink with more of them."""


@dataclass(frozen=True)
class Cut:
    """Sequences longer than `segment` tokens are walked in segments of so many, each by programs of its own.

    Attributes:
        piece: tokens whose effect on the state is found at once; divides `segment`.
        sequences: how many of the batch are longer than a segment.
        segments: segments of the longest.
    """

    segment: int
    piece: int
    sequences: int
    segments: int

    @property
    def pieces(self) -> int:
        """Pieces before the last segment of the longest sequence."""
        return (self.segments - 1) * (self.segment // self.piece)


@dataclass(frozen=True)
class Batch:
    """What the plan goes by. `heads` counts a head once for each program its head dimension takes; `size` is N."""

    longest: int
    tokens: int
    sequences: int
    heads: int
    size: int


def walk_is_shorter(arguments: SsdArguments) -> bool:
    """Whether the walk, cut or not, takes less time than the five stages take for all tokens and heads."""
    multiprocessors = _multiprocessors(arguments.x.device)
    stages = arguments.metadata.tokens * arguments.x.shape[1] * STAGES_NS * SIZED_ON / multiprocessors
    return segments_for(_batch(arguments), multiprocessors)[1] <= stages


def cut_for(arguments: SsdArguments) -> Cut | None:
    """Segments of the pinned piece tile, else those that finish soonest; None where no sequence is cut."""
    if is_pinned("ssd_piece"):
        tile = tile_for("ssd_piece")
        return _cut(arguments, tile.block("SEGMENT"), tile.block("PIECE"))
    if not arguments.x.is_cuda:
        return None
    segments, _ = segments_for(_batch(arguments), _multiprocessors(arguments.x.device))
    if segments == 1:
        return None
    piece = cdiv(cdiv(arguments.metadata.longest, segments * PIECES_A_SEGMENT), ALIGNMENT) * ALIGNMENT
    return _cut(arguments, piece * PIECES_A_SEGMENT, piece)


def walk_tile(arguments: SsdArguments, cut: Cut | None) -> Tile:
    """The pinned tile, else the candidate whose programs finish in less time."""
    x, metadata = arguments.x, arguments.metadata
    if is_pinned("ssd_walk") or not x.is_cuda:
        return tile_for("ssd_walk")
    plain, capped = CANDIDATES["ssd_walk"][:2]
    walked = metadata.sequences + (0 if cut is None else cut.sequences * (cut.segments - 1))
    programs = x.shape[1] * walked * cdiv(x.shape[2], plain.block("BLOCK_P"))
    return plain if waves_favour_plain(programs, _multiprocessors(x.device)) else capped


def waves_favour_plain(programs: int, multiprocessors: int) -> bool:
    """Whether so many programs finish sooner, or as soon, without the cap on registers."""
    plain = cdiv(programs, PROGRAMS_AT_ONCE * multiprocessors)
    return plain <= cdiv(programs, PROGRAMS_AT_ONCE_CAPPED * multiprocessors) * CAPPED_TIME


@lru_cache(maxsize=256)
def segments_for(batch: Batch, multiprocessors: int) -> tuple[int, float]:
    """Segments of the longest sequence that finish soonest, 1 for no cut, and the time in ns they should take.

    Sequences are counted as so many of the longest one's length as hold all tokens. Remembered, for every layer of a pass asks
    twice.
    """
    best, best_time = 1, _walk_time(batch.longest, batch, multiprocessors)
    enough = best_time * (1 - LEAST_GAIN)
    for segments in SEGMENTS:
        segment = cdiv(batch.longest, segments)
        if segment < PIECES_A_SEGMENT * ALIGNMENT:
            break
        before = segments - 1
        states = min(batch.sequences, batch.tokens // segment) * before * PIECES_A_SEGMENT * batch.size
        if states * STATE_BYTES > batch.tokens * INPUT_BYTES:
            continue
        pieces = batch.tokens * batch.heads * before / segments * PIECE_NS * SIZED_ON / multiprocessors
        time = CUT_NS + pieces + _walk_time(segment, batch, multiprocessors)
        if time < min(best_time, enough):
            best, best_time = segments, time
    return best, best_time


def _walk_time(segment: int, batch: Batch, multiprocessors: int) -> float:
    programs = cdiv(batch.tokens * batch.heads, max(segment, 1))
    plain = cdiv(programs, PROGRAMS_AT_ONCE * multiprocessors)
    capped = cdiv(programs, PROGRAMS_AT_ONCE_CAPPED * multiprocessors)
    return segment * WALK_NS * min(plain, capped * CAPPED_TIME)


def _batch(arguments: SsdArguments) -> Batch:
    metadata, (heads, headdim) = arguments.metadata, arguments.x.shape[1:]
    parts = cdiv(headdim, CANDIDATES["ssd_walk"][0].block("BLOCK_P"))
    return Batch(metadata.longest, metadata.tokens, metadata.sequences, heads * parts, arguments.B.shape[2])


def _cut(arguments: SsdArguments, segment: int, piece: int) -> Cut | None:
    metadata = arguments.metadata
    longer = sum(length > segment for length in metadata.lengths)
    return Cut(segment, piece, longer, cdiv(metadata.longest, segment)) if longer else None


@cache
def _multiprocessors(device: torch.device) -> int:
    if device.type != "cuda":
        return SIZED_ON
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
