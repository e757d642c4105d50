"""Two threads that scan half of the heads each must change nothing but the time."""

import os
from collections.abc import Iterator

import pytest
import torch
from mamba2_varlen.torch_backend import halves

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="halves are for CPU tensors")


@pytest.fixture
def side_by_side(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Splits scans of any size; yields the number of heads of each scan that ran in a thread of its own."""
    seen: list[int] = []
    split = halves.split

    def record(arguments):
        parts = split(arguments)
        seen.extend(part.x.shape[1] for part in parts or ())
        return parts

    monkeypatch.setattr(halves, "MIN_ELEMENTS", 1)
    monkeypatch.setattr(halves, "split", record)
    torch.set_num_threads(2)
    yield seen
    torch.set_num_threads(1)


def one_thread(run):
    """`run()` as it is on a single thread."""
    torch.set_num_threads(1)
    result = run()
    torch.set_num_threads(2)
    return result


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("lengths", [(64,), (33, 0, 70)], ids=str)
def test_equals_one_scan_of_all_heads(side_by_side, scan_case, random_tensor, assert_close, lengths, groups) -> None:
    case = scan_case(lengths, sizes=(4, 8, groups, 16))
    tokens = sum(lengths)
    options = {"D": random_tensor(4, 8), "z": random_tensor(tokens, 4, 8), "dt_bias": random_tensor(4)}

    def run():
        return case.run("torch", return_intermediate_states=True, dt_softplus=True, **options)

    together, alone = run(), one_thread(run)
    assert side_by_side == [2, 2]
    for ours, theirs in zip(together, alone, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize(("heads", "groups"), [(3, 1), (3, 3), (9, 3)])
def test_what_has_no_middle_is_scanned_whole(side_by_side, scan_case, assert_close, heads, groups) -> None:
    case = scan_case((40,), sizes=(heads, 8, groups, 16))
    assert_close(case.run("torch").out, case.run("reference").out)
    assert side_by_side == []


def test_threads_take_half_each_and_leave_the_default(side_by_side, scan_case) -> None:
    torch.set_num_threads(4)
    with torch.inference_mode():
        out = scan_case((40,)).run("torch").out
    assert out.is_inference()
    assert torch.get_num_threads() == 4
    seen = list(halves._threads.pool(2).map(lambda _: torch.get_num_threads(), range(4)))
    assert seen == [2, 2, 2, 2]


def test_an_error_in_a_half_reaches_the_caller(side_by_side, scan_case, monkeypatch) -> None:
    case = scan_case((40,))
    monkeypatch.setattr(halves, "split", lambda arguments: (arguments, None))
    with pytest.raises(AttributeError):
        case.run("torch")


def test_a_forked_child_starts_threads_of_its_own(side_by_side, scan_case) -> None:
    scan_case((40,)).run("torch")
    child = os.fork()
    if child == 0:
        fresh = halves._threads._pool is None
        os._exit(0 if fresh else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
