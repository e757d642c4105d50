"""The quickened interpreter: the same numbers, and a language that is as it was once a launch is over."""

import os

os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined

import pytest
import torch
import triton
import triton.language as tl
from mamba2_conformance import interpreter
from triton.runtime import interpreter as triton_interpreter


@triton.jit
def _twice(value):
    return _plus(value, value)


@triton.jit
def _plus(a, b):
    return a + b


@triton.jit
def _kernel(x_ptr, out_ptr, wrong: tl.constexpr):
    at = tl.arange(0, 4)
    value = _twice(tl.load(x_ptr + at)) + tl.sum(tl.cumsum(tl.load(x_ptr + at), 0), 0)
    if wrong:
        value = value + tl.arange(0, 8)
    tl.store(out_ptr + at, value)


def launched(wrong=False):
    x, out = torch.arange(4.0), torch.empty(4)
    _kernel[(1,)](x, out, wrong)
    return out.tolist()


@pytest.fixture
def patched(monkeypatch):
    """The modules that Triton's own patching was asked for, with the quickening around it."""
    asked = []
    own = getattr(triton_interpreter._patch_lang, "__self__", None)
    patch = triton_interpreter._patch_lang if own is None else own._patch

    def counted(function):
        asked.append(function.__name__)
        return patch(function)

    monkeypatch.setattr(triton_interpreter, "_patch_lang", counted)
    interpreter.quicken()
    return asked


def test_a_kernel_with_device_functions_gives_the_same_and_is_patched_once(patched):
    expected = [20.0 / 2 + 2 * value for value in range(4)]
    assert [launched(), launched()] == [expected, expected]
    assert patched.count("_kernel") == 2
    assert not {"_twice", "_plus"} & set(patched), "the same modules are in place already"


def test_the_language_is_as_it_was_after_a_launch_and_after_one_that_failed(patched):
    before = tl.load, tl.arange
    launched()
    assert (tl.load, tl.arange) == before
    with pytest.raises(Exception, match="8"):
        launched(wrong=True)
    assert (tl.load, tl.arange) == before
    assert launched() == [20.0 / 2 + 2 * value for value in range(4)]


def test_quickening_twice_is_quickening_once(patched):
    once = triton_interpreter._patch_lang
    interpreter.quicken()
    assert triton_interpreter._patch_lang == once


def test_numpy_types_are_those_that_triton_looks_up(patched):
    quick, slow = triton_interpreter._get_np_dtype, triton_interpreter._get_np_dtype.slow
    scalars = [tl.int1, tl.int8, tl.uint16, tl.int64, tl.float16, tl.bfloat16, tl.float32, tl.float64, tl.float8e5]
    scalars += [tl.pointer_type(tl.float32), tl.pointer_type(tl.int8)]
    for scalar in scalars:
        for dtype in (scalar, tl.block_type(scalar, [4, 2])):
            assert quick(dtype) == quick(dtype) == slow(dtype)


def test_the_type_of_a_tuple_has_its_name_when_asked(patched):
    kind = tl.core.tuple_type([tl.int32, tl.core.constexpr_type(3)], ["a", "b"])
    assert str(kind) == kind.name == "[a:int32,b:constexpr_type[3]]"
    assert tl.core.tuple_type([tl.int32]) == tl.core.tuple_type([tl.int32], [""])
