"""The judge of lines, on values. What a real child sends is tested in test_supervision."""

import base64
import json
from typing import Any

import pytest
from driftline.contracts.channel import MAX_LINE_BYTES
from driftline.contracts.jobs import BuildSpec, EvaluateSpec
from driftline_worker.channel import MOST_DROPPED, Expected, Judge
from driftline_worker.raw_lines import Flooded, RawLines
from hypothesis import given
from hypothesis import strategies as st

HELLO = b'{"type":"hello","protocol":1}'


def line(kind: str, **fields: Any) -> bytes:
    return json.dumps({"type": kind, **fields}).encode()


def forced(doc_id: int, values: int, **counts: int) -> bytes:
    logprobs = base64.b64encode(bytes(4 * values)).decode()
    return line(
        "teacher_forced", doc_id=doc_id, **({"prompt_tokens": 3, "answer_tokens": 2} | counts), logprobs=logprobs
    )


def greeted(expected: Expected) -> Judge:
    judge = Judge(expected)
    assert judge.take(HELLO) is not None
    return judge


@pytest.mark.parametrize(
    ("raw", "believed"),
    [
        (forced(7, 5), True),
        (forced(7, 4), False),
        (forced(8, 5), False),
        (forced(7, 5, prompt_tokens=4), False),
        (line("teacher_forced", doc_id=7, prompt_tokens=1, answer_tokens=0, logprobs="!!!!"), False),
        (line("environment", must_match={"a": "b"}, recorded={}), True),
        (line("progress", phase="load", done=2**31, total=1), True),
        (line("check_summary", layout="x", era="x", device="cpu", backends=[]), False),
        (line("environment", must_match={}, recorded={}, extra=1), False),
    ],
)
def test_an_evaluation_says_what_was_asked(raw: bytes, believed: bool, evaluate_spec: EvaluateSpec) -> None:
    judge = greeted(Expected.of(evaluate_spec))
    assert (judge.take(raw) is not None) is believed
    assert judge.dropped == (not believed)


def test_a_number_no_column_holds_is_not_believed(evaluate_spec: EvaluateSpec) -> None:
    judge = greeted(Expected.of(evaluate_spec))
    scores = {"task_version": "3", "num_fewshot": 2**31, "task_hash": "x", "metrics": {}, "stderr": {}, "right": {}}
    assert judge.take(line("scores", **scores)) is None
    assert judge.take(line("scores", **(scores | {"num_fewshot": 3}))) is not None
    assert judge.take(line("scores", **(scores | {"num_fewshot": 3}))) is None, "scores come once"


def test_a_build_says_only_the_architectures_asked(build_spec: BuildSpec) -> None:
    judge = greeted(Expected.of(build_spec))
    kernel = {"kernel": "k", "config": "c", "compiled": True}
    assert judge.take(line("kernel_build", arch="sm_90", **kernel)) is not None
    assert judge.take(line("kernel_build", arch="sm_90", **kernel)) is None
    assert judge.take(line("kernel_build", arch="sm_120", **kernel)) is None
    assert judge.results == 1


@given(st.lists(st.binary(max_size=60), max_size=60))
def test_random_bytes_are_never_believed_and_never_raise(junk: list[bytes]) -> None:
    judge = Judge(Expected.of(BuildSpec.model_construct(kind="build", architectures=[90])))
    judge.take(HELLO)
    believed = [judge.take(raw) for raw in junk]
    assert believed == [None] * len(junk)
    assert judge.dropped == len(junk)
    assert judge.garbage is (len(junk) > MOST_DROPPED)


@given(st.lists(st.binary(max_size=50).map(lambda data: data.replace(b"\n", b"")), max_size=20), st.data())
def test_lines_are_the_same_however_the_pipe_cuts_them(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(one + b"\n" for one in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader = RawLines(total_bytes=10_000)
    found: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:end])
    assert found == lines
    assert not reader.torn


def test_the_longest_line_passes_and_one_byte_more_is_a_flood() -> None:
    reader = RawLines(total_bytes=1 << 30)
    assert reader.feed(b"x" * MAX_LINE_BYTES + b"\n") == [b"x" * MAX_LINE_BYTES]
    with pytest.raises(Flooded):
        reader.feed(b"x" * (MAX_LINE_BYTES + 1))
    with pytest.raises(Flooded):
        RawLines(total_bytes=10).feed(b"1234567\n123\n")
