"""Banners as real engines printed them, and lines that only look like one."""

import pytest
from driftline_worker.children.vllm_engine.banner import Banner, BannersDiffer, banner_in, one_banner

CONFIG = (
    "model='canary/model', speculative_config=None, dtype=torch.float32, max_seq_len=2048, enforce_eager=True, "
    "kv_cache_dtype=auto, seed=1234, enable_prefix_caching=False, enable_chunked_prefill=True"
)
V1_CPU = f"(EngineCore pid=30358) INFO 12-02 08:46:12 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: {CONFIG}"
V1_091 = f"INFO 06-17 00:26:53 [core.py:70] Initializing a V1 LLM engine (v0.9.1) with config: {CONFIG}"
V0_010 = f"INFO 07-25 10:00:00 [llm_engine.py:230] Initializing a V0 LLM engine (v0.10.0) with config: {CONFIG}"
V0_06 = f"INFO 10-10 04:27:10 llm_engine.py:237] Initializing an LLM engine (v0.6.2) with config: {CONFIG}"


@pytest.mark.parametrize(
    ("line", "mode", "release"),
    [
        (V1_CPU, "V1", "0.32.0"),
        (V1_091, "V1", "0.9.1"),
        (V0_010, "V0", "0.10.0"),
        (f"\x1b[0;36m(EngineCore_DP0 pid=7)\x1b[0;0m {V0_010}".replace("V0", "V1"), "V1", "0.10.0"),
        (V1_CPU.replace("EngineCore pid", "MainProcess pid"), "V1", "0.32.0"),
    ],
)
def test_the_engine_and_its_release(line: str, mode: str, release: str) -> None:
    assert banner_in(line) == Banner(mode, release)


def test_releases_that_named_no_mode_had_one() -> None:
    assert banner_in(V0_06.replace("llm_engine.py:237]", "[llm_engine.py:237]")) == Banner("V0", "0.6.2")


def test_resolved_settings_are_read_from_it() -> None:
    found = banner_in(V1_CPU)
    assert found is not None
    assert found.settings["dtype"] == "torch.float32"
    assert (found.settings["enable_prefix_caching"], found.settings["enable_chunked_prefill"]) == ("False", "True")


@pytest.mark.parametrize(
    "line",
    [
        "Initializing a V1 LLM engine (v0.32.0) with config: model=x",  # nobody's log
        f"WARNING 12-02 08:46:12 [core.py:133] {V1_091.partition('] ')[2]}",
        f"INFO 12-02 08:46:12 [model.py:733] Resolved architecture: {V1_091.partition('] ')[2]}",  # a name that imitates
        f"> {V1_CPU}",
        "INFO 12-02 08:46:12 [core.py:133] Initializing a V2 LLM engine (v0.32.0) with config: model=x",
        "",
    ],
)
def test_a_line_that_only_looks_like_one(line: str) -> None:
    assert banner_in(line) is None


def test_several_processes_agree_and_a_poisoned_line_is_refused() -> None:
    assert one_banner([V1_CPU, "INFO something", V1_CPU]) == Banner("V1", "0.32.0")
    assert one_banner(["INFO something"]) is None
    poison = V1_CPU.replace("V1 LLM", "V0 LLM")
    with pytest.raises(BannersDiffer, match=r"engine V0 v0\.32\.0 and engine V1 v0\.32\.0"):
        one_banner([poison, V1_CPU])
