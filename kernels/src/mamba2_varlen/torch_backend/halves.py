"""Two halves of the heads, scanned side by side by two threads of our own.

Within one scan hundreds of small operations would each wait for all of torch's threads at a barrier. Heads do not
depend on each other, so each half can go its own way: there is one meeting, at the end.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import torch
from torch import Tensor

from ..arguments import SsdArguments
from ..results import SsdResult

# Elements of x in a half, at least: below, Python's own time, which threads cannot share, outweighs the barriers.
MIN_ELEMENTS = 1 << 21

Scan = Callable[[SsdArguments], SsdResult]


def scan_in_halves(scan: Scan, arguments: SsdArguments) -> SsdResult:
    """`scan(arguments)`, on a CPU of several threads and for a large x computed as two scans of half the heads."""
    threads = torch.get_num_threads()
    if arguments.x.device.type != "cpu" or threads < 2 or arguments.x.numel() < 2 * MIN_ELEMENTS:
        return scan(arguments)
    halves = split(arguments)
    if halves is None:
        return scan(arguments)
    inference, grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def run(half: SsdArguments) -> SsdResult:
        with torch.inference_mode(inference), torch.set_grad_enabled(grad):
            return scan(half)

    first, second = _threads.pool(threads // 2).map(run, halves)
    final = torch.cat((first.final_states, second.final_states), dim=1)
    kept = None
    if first.intermediate_states is not None and second.intermediate_states is not None:
        kept = torch.cat((first.intermediate_states, second.intermediate_states), dim=1)
    return SsdResult(arguments.out, final, kept)


def split(arguments: SsdArguments) -> tuple[SsdArguments, SsdArguments] | None:
    """The arguments of each half of the heads, as views; None if heads and groups have no common middle."""
    heads, groups = arguments.x.shape[1], arguments.B.shape[1]
    if heads % 2 or (groups > 1 and groups % 2):
        return None
    return _part(arguments, 0), _part(arguments, 1)


def _part(arguments: SsdArguments, half: int) -> SsdArguments:
    def cut(tensor: Tensor, dim: int) -> Tensor:
        size = tensor.shape[dim] // 2
        return tensor.narrow(dim, half * size, size)

    def cut_optional(tensor: Tensor | None, dim: int) -> Tensor | None:
        return None if tensor is None else cut(tensor, dim)

    shared = arguments.B.shape[1] == 1
    return replace(
        arguments,
        x=cut(arguments.x, 1),
        dt=cut(arguments.dt, 1),
        A=cut(arguments.A, 0),
        B=arguments.B if shared else cut(arguments.B, 1),
        C=arguments.C if shared else cut(arguments.C, 1),
        D=cut_optional(arguments.D, 0),
        z=cut_optional(arguments.z, 1),
        step=replace(arguments.step, bias=cut_optional(arguments.step.bias, 0)),
        initial_states=cut_optional(arguments.initial_states, 1),
        out=cut(arguments.out, 1),
    )


class _Threads:
    """Two threads with half of torch's threads each, made at first use and anew when that number changes."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._share = 0

    def pool(self, share: int) -> ThreadPoolExecutor:
        """Threads that compute with `share` of torch's threads each."""
        if self._pool is None or self._share != share:
            self._pool, self._share = self._start(share), share
        return self._pool

    def forget(self) -> None:
        """After a fork: the child has the object, but not its threads."""
        self._pool = None

    @staticmethod
    def _start(share: int) -> ThreadPoolExecutor:
        everyone = torch.get_num_threads()

        def settle() -> None:
            # The first question makes torch take its default for this thread, which would later undo the setting.
            torch.get_num_threads()
            torch.set_num_threads(share)

        pool = ThreadPoolExecutor(2, thread_name_prefix="mamba2-heads", initializer=settle)
        # Both threads must have started, and set what torch also takes for every later thread's default, before that
        # default is put back.
        meeting = Barrier(2)
        list(pool.map(lambda _: meeting.wait(), range(2)))
        torch.set_num_threads(everyone)
        return pool


_threads = _Threads()
os.register_at_fork(after_in_child=_threads.forget)
