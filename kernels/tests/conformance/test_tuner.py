"""One tile of a tuned kernel in force at a time, and what its tuner would pass over."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from mamba2_conformance.adapters.protocol import NotJudged
from mamba2_conformance.adapters.tuner import Tile, Tuners
from triton.runtime.errors import OutOfResources


def tuned(sizes: Sequence[int]) -> Tuners:
    tiles = tuple(Tile(SimpleNamespace(kwargs={"BLOCK_SIZE_M": size}, num_warps=4, num_stages=2)) for size in sizes)
    return Tuners({"scan": SimpleNamespace(configs=[tiles[0].config])}, {"scan": tiles})


def test_a_tile_is_in_force_for_as_long_as_it_is_pinned() -> None:
    tuners = tuned([16, 32])
    smallest, larger = tuners.tiles["scan"]
    with tuners.pinned("scan", larger):
        assert tuners.tuners["scan"].configs == [larger.config]
    assert tuners.tuners["scan"].configs == [smallest.config]


def test_a_tile_too_large_for_the_gpu_is_not_judged_for_its_tuner_would_not_choose_it() -> None:
    tuners = tuned([16, 256])
    with (
        pytest.raises(NotJudged, match=r"M256.* does not fit this GPU.*Required: 263168, Hardware limit: 232448"),
        tuners.pinned("scan", tuners.tiles["scan"][1]),
    ):
        raise OutOfResources(263168, 232448, "shared memory")
    assert tuners.tuners["scan"].configs == [tuners.tiles["scan"][0].config]


def test_the_only_tile_there_is_must_fit() -> None:
    tuners = tuned([256])
    with pytest.raises(OutOfResources), tuners.pinned("scan", tuners.tiles["scan"][0]):
        raise OutOfResources(263168, 232448, "shared memory")
