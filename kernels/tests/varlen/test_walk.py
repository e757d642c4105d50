"""The scan's one-launch path, asked for by a pinned tile wherever it is not the default: everything the five stages
serve."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch
from mamba2_varlen import build_metadata
from mamba2_varlen.arguments import SsdArguments, StepSize
from mamba2_varlen.triton_backend import walk_plan
from mamba2_varlen.triton_backend.launch import recorded_launches
from mamba2_varlen.triton_backend.tiles import CANDIDATES, Tile, pin_tiles


def boundaries(lengths: tuple[int, ...]) -> list[int]:
    return [sum(lengths[:count]) for count in range(len(lengths) + 1)]


SMALL = Tile((("BLOCK_Q", 16), ("BLOCK_P", 16)), 4, 1)


CUT = Tile((("SEGMENT", 32), ("PIECE", 16), ("BLOCK_Q", 16), ("BLOCK_P", 16)), 4, 1)


@pytest.fixture(params=[False, True], ids=["whole", "cut"])
def walking(request: pytest.FixtureRequest) -> Iterator[None]:
    with pin_tiles("ssd_walk", SMALL), pin_tiles("ssd_piece", CUT) if request.param else nullcontext():
        yield


@pytest.mark.parametrize("lengths", [(63,), (33, 1, 37), (5, 0, 7), (0, 0), (16, 32)], ids=str)
@pytest.mark.parametrize("initial", [True, False], ids=["carried", "fresh"])
def test_equals_reference(walking, scan_case, assert_close, lengths, initial) -> None:
    case = scan_case(lengths, initial=initial)
    expected = case.run("reference", return_intermediate_states=True)
    actual = case.run("triton", return_intermediate_states=True)
    for ours, reference in zip(actual, expected, strict=True):
        assert_close(ours, reference)


def test_every_option_together(walking, scan_case, random_tensor, assert_close) -> None:
    case = scan_case((33, 40))
    options = {
        "D": random_tensor(4, 8),
        "z": random_tensor(73, 4, 8),
        "dt_bias": random_tensor(4),
        "dt_softplus": True,
        "dt_limit": (0.3, 1.5),
    }
    for skip in (options["D"], random_tensor(4)):
        changed = {**options, "D": skip}
        assert_close(case.run("triton", **changed).out, case.run("reference", **changed).out)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("sizes", [(5, 5), (24, 40)], ids=["tiny", "odd"])
def test_groups_and_odd_sizes(walking, scan_case, assert_close, groups, sizes) -> None:
    case = scan_case((40, 21), sizes=(4, sizes[0], groups, sizes[1]))
    expected, actual = (case.run(name, chunk_size=16) for name in ("reference", "triton"))
    assert_close(actual.out, expected.out)
    assert_close(actual.final_states, expected.final_states)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("state_dtype", [None, torch.bfloat16])
def test_sixteen_bit_inputs_and_states(walking, scan_case, assert_close, dtype, state_dtype) -> None:
    case = scan_case((40, 17), dtype=dtype)
    expected, actual = (case.run(name, state_dtype=state_dtype) for name in ("reference", "triton"))
    assert_close(actual.out, expected.out, dtype)
    assert_close(actual.final_states, expected.final_states, torch.bfloat16)


def test_a_nan_stays_in_its_own_sequence(walking, scan_case, assert_close) -> None:
    case = scan_case((40, 20, 37))
    clean = case.run("reference")
    for tensor in (case.tensors[0], *case.tensors[3:]):
        tensor[40:60] = torch.nan
    actual = case.run("triton")
    assert_close(torch.cat([actual.out[:40], actual.out[60:]]), torch.cat([clean.out[:40], clean.out[60:]]))
    assert_close(actual.final_states[[0, 2]], clean.final_states[[0, 2]])


@pytest.mark.parametrize("split", [1, 16, 45])
def test_two_calls_with_carried_state_equal_one(walking, scan_case, assert_close, split) -> None:
    case = scan_case((60,))
    x, dt, A, B, C = case.tensors
    whole = case.run("reference")
    first = type(case)((split,), (x[:split], dt[:split], A, B[:split], C[:split]), case.options).run("triton")
    rest = (x[split:], dt[split:], A, B[split:], C[split:])
    second = type(case)((60 - split,), rest, {"initial_states": first.final_states}).run("triton")
    assert_close(torch.cat([first.out, second.out]), whole.out)
    assert_close(second.final_states, whole.final_states)


def test_strided_inputs(walking, scan_case, assert_close) -> None:
    case = scan_case((30, 11))
    strided = tuple(t if t.dim() == 1 else t.movedim(0, -1).contiguous().movedim(-1, 0) for t in case.tensors)
    assert_close(type(case)(case.lengths, strided, case.options).run("triton").out, case.run("reference").out)


def test_huge_decay_stays_finite(walking, scan_case) -> None:
    case = scan_case((70,), sizes=(2, 8, 1, 8))
    x, dt, _, B, C = case.tensors
    A = torch.full((2,), -1e6, device=x.device)
    result = type(case)(case.lengths, (x, dt * 20, A, B, C), case.options).run("triton", chunk_size=256)
    assert torch.isfinite(result.out).all()
    assert torch.isfinite(result.final_states).all()


def test_one_launch_where_it_serves_and_five_where_not(scan_case) -> None:
    case = scan_case((40,), sizes=(2, 8, 1, 16))

    def launched(**options: object) -> list[str]:
        with recorded_launches() as launches:
            case.run("triton", **options)
        return [launch.name for launch in launches]

    with pin_tiles("ssd_walk", CANDIDATES["ssd_walk"][0]):
        assert launched() == ["ssd_walk"]
        # A tile of 32 rows ends where not every chunk of 16 does, so the states after each chunk need the stages.
        assert len(launched(chunk_size=16, return_intermediate_states=True)) == 5
    assert len(launched()) == 5


@pytest.mark.parametrize(
    ("programs", "plain"), [(192, True), (384, False), (512, True), (1024, True), (1536, False), (4096, False)]
)
def test_registers_are_capped_where_that_was_measured_to_be_faster(programs: int, plain: bool) -> None:
    assert walk_plan.waves_favour_plain(programs, 132) is plain


def test_a_pinned_cut_finds_pieces_before_it_walks(scan_case) -> None:
    case = scan_case((70, 20, 32))
    with pin_tiles("ssd_piece", CUT), pin_tiles("ssd_walk", SMALL), recorded_launches() as launches:
        case.run("triton")
    assert [launch.name for launch in launches] == ["ssd_piece", "ssd_walk"]
    pieces, walk = launches
    # Only the sequence of 70 tokens is longer than 32: two whole segments of two pieces come before its last, so it has
    # three programs and the others one each.
    assert pieces.grid[1] == 4
    assert walk.grid[1] == 5


def test_a_cut_that_tiles_do_not_fill_leaves_the_call_to_the_stages(scan_case) -> None:
    odd = Tile((("SEGMENT", 24), ("PIECE", 8), ("BLOCK_Q", 16), ("BLOCK_P", 16)), 4, 1)
    with pin_tiles("ssd_piece", odd), recorded_launches() as launches:
        scan_case((70,)).run("triton")
    assert len(launches) == 5


@pytest.mark.parametrize(
    ("longest", "tokens", "sequences", "heads", "segments"),
    [
        (16384, 65536, 4, 48, 2),  # 1.04 ms whole, 0.94 cut
        (65536, 65536, 1, 48, 8),  # 3.47 ms, 1.12
        (16384, 16384, 1, 48, 8),  # 0.875 ms, 0.306
        (16384, 65536, 4, 128, 1),  # 2.19 ms, 2.67 in three
        (1024, 8192, 8, 48, 1),  # 0.110 ms, 0.142
        (1024, 8192, 8, 128, 1),
        (0, 0, 0, 48, 1),
    ],
)
def test_sequences_are_cut_where_that_was_measured_to_be_faster(longest, tokens, sequences, heads, segments) -> None:
    assert walk_plan.segments_for(walk_plan.Batch(longest, tokens, sequences, heads, 128), 132)[0] == segments


def test_states_of_pieces_never_outgrow_the_inputs() -> None:
    for longest, sequences in [(2048, 1), (2048, 30), (65536, 2), (9000, 3)]:
        tokens = longest * sequences
        segments, _ = walk_plan.segments_for(walk_plan.Batch(longest, tokens, sequences, 1, 128), 132)
        assert sequences * (segments - 1) * walk_plan.PIECES_A_SEGMENT * 128 * 4 <= tokens * 2


@pytest.mark.parametrize(
    ("lengths", "heads", "shorter"),
    [((40, 40, 40, 40), 48, True), ((160,), 48, False), ((160,), 128, True), ((150, 5, 5), 48, False), ((0,), 1, True)],
    ids=str,
)
def test_few_long_sequences_of_few_heads_are_left_to_the_five_stages(lengths, heads: int, shorter: bool) -> None:
    tokens = sum(lengths)
    x, B, A = torch.zeros(tokens, heads, 1), torch.zeros(tokens, 1, 1), torch.zeros(heads)
    arguments = SsdArguments(
        x=x,
        dt=x[..., 0],
        A=A,
        B=B,
        C=B,
        D=None,
        z=None,
        step=StepSize(bias=None, softplus=False, limit=(0.0, 1.0)),
        metadata=build_metadata(boundaries(lengths), chunk_size=16),
        initial_states=None,
        state_dtype=torch.float32,
        out=x,
        return_intermediate_states=False,
    )
    assert walk_plan.walk_is_shorter(arguments) is shorter


@pytest.mark.gpu
def test_a_long_sequence_is_cut_on_a_gpu(scan_case, assert_close) -> None:
    case = scan_case((16384, 37), sizes=(32, 64, 1, 128), dtype=torch.bfloat16)
    with recorded_launches() as launches:
        case.run("triton", chunk_size=256)
    assert [launch.name for launch in launches] == ["ssd_piece", "ssd_walk"]
    first, second = (case.run("triton", chunk_size=256) for _ in range(2))
    assert torch.equal(first.out, second.out)
    expected = case.run("torch", chunk_size=256)
    assert_close(first.out, expected.out, torch.bfloat16)
    assert_close(first.final_states, expected.final_states, torch.bfloat16)


@pytest.mark.gpu
def test_sixteen_bit_inputs_walk_on_a_gpu(scan_case) -> None:
    case = scan_case((300, 270, 41), sizes=(64, 64, 1, 128), dtype=torch.bfloat16)
    with recorded_launches() as launches:
        case.run("triton", chunk_size=256)
    assert [launch.name for launch in launches] == ["ssd_walk"]
    first, second = (case.run("triton", chunk_size=256) for _ in range(2))
    assert torch.equal(first.out, second.out)
    assert torch.equal(first.final_states, second.final_states)
