"""The engine that came up against the one that was asked for."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from driftline_worker.children.hf_engine.refusal import Refusal
from driftline_worker.children.vllm_engine.banner import Banner
from driftline_worker.children.vllm_engine.engine_log import EngineLog
from driftline_worker.children.vllm_engine.engine_start import agreed, check_origin, check_pins, failed_start
from driftline_worker.children.vllm_engine.spec import EngineEnvironment, VllmSpec

MakeSpec = Callable[..., VllmSpec]
V1 = type("LLMEngine", (), {"__module__": "vllm.v1.engine.llm_engine"})
V0 = type("LLMEngine", (), {"__module__": "vllm.engine.llm_engine"})
BANNER = (
    "(EngineCore pid=3) INFO 12-02 08:46:12 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='x'"
)


def test_banner_object_lane_and_release_agree(make_spec: MakeSpec) -> None:
    assert agreed(Banner("V1", "0.32.0+cpu"), make_spec("V1"), V1) == Banner("V1", "0.32.0+cpu")
    assert agreed(Banner("V1", "0.33.dev1"), make_spec("V1", layout="vllm"), V1).release == "0.33.dev1"


@pytest.mark.parametrize(
    ("banner", "mode", "engine", "words"),
    [
        (Banner("V1", "0.32.0"), "V0", V1, "the lane wants V0, the log says V1"),
        (Banner("V0", "0.32.0"), "V0", V1, "the engine is vllm.v1.engine.llm_engine"),  # a poisoned line
        (Banner("V1", "0.32.0"), "V1", V0, "the engine is vllm.engine.llm_engine"),
        (Banner("V1", "0.31.0"), "V1", V1, "the log says v0.31.0, environment 'an environment' promises 0.32.0"),
        (None, "V1", V1, "without the line"),
    ],
)
def test_any_other_engine_is_a_mismatch(
    make_spec: MakeSpec, banner: Banner | None, mode: str, engine: type, words: str
) -> None:
    with pytest.raises(Refusal, match=words) as refusal:
        agreed(banner, make_spec(mode), engine)
    assert (refusal.value.kind, refusal.value.reason) == ("permanent", "engine_mismatch")


@pytest.mark.parametrize("imported", ["/site-packages/vllm/__init__.py", None])
def test_a_vllm_from_elsewhere_than_the_commit_is_a_mismatch(imported: str | None) -> None:
    package = Path("/own/engine/vllm")
    check_origin("/own/engine/vllm/__init__.py", package)
    with pytest.raises(Refusal, match="not from /own/engine/vllm") as refusal:
        check_origin(imported, package)
    assert (refusal.value.kind, refusal.value.reason) == ("permanent", "engine_mismatch")


def test_an_environment_that_is_not_as_pinned_is_refused() -> None:
    promised = EngineEnvironment("old", "0.10.0", {"pytest": version("pytest")}, "0" * 64)
    with pytest.raises(Refusal, match=r"environment 'old' promises vllm 0\.10\.0, installed is none"):
        check_pins(promised)


def test_banners_count_until_the_engine_is_up() -> None:
    log = EngineLog()
    log.add(BANNER)
    assert log.started() == Banner("V1", "0.32.0")
    log.add(BANNER.replace("V1", "V0"))  # an answer that makes vLLM log this
    assert log.started() == Banner("V1", "0.32.0")


def test_a_failed_start_is_told_by_its_cause() -> None:
    log = EngineLog()
    log.add("(EngineCore pid=3) ERROR 09-03 11:03:37 [core.py:712] torch.OutOfMemoryError: CUDA out of memory.")
    gone = RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {}")
    refusal = failed_start(gone, log)
    assert (refusal.kind, refusal.reason) == ("transient", "out_of_memory")
    unknown = failed_start(ValueError("what is this"), EngineLog())
    assert (unknown.kind, unknown.reason) == ("permanent", "engine_not_started")
    assert "ValueError: what is this" in str(unknown)
