"""The command line of the lanes that ship: those of vLLM's pull request #21467 as it printed them, and the canary's."""

from pathlib import Path

from driftline.harness_command import harness_command
from driftline.lane_file import read_lanes

LANES = read_lanes(Path(__file__).parents[2] / "driftline.toml")


def line_of(name: str) -> tuple[str, tuple[str, ...]]:
    lane = LANES.named(name)
    assert lane is not None
    made = harness_command(lane, root=Path("/my place"), programs=Path("/env/bin"))
    return made.line, made.notes


def test_the_lanes_of_the_pull_request() -> None:
    line, notes = line_of("granite-4.0-tiny V1")
    assert line == (
        "cd '/my place' && VLLM_ATTENTION_BACKEND=FLASHINFER VLLM_USE_V1=1 /env/bin/lm_eval --model vllm --model_args "
        "pretrained=ibm-granite/granite-4.0-tiny-preview,tensor_parallel_size=1,dtype=auto,gpu_memory_utilization=0.95,"
        "enable_prefix_caching=False,trust_remote_code=True --include_path '/my place/canary/tasks' --tasks gsm8k "
        "--batch_size auto --output_path out/lm_eval --log_samples"
    )
    assert [note.split(";")[0] for note in notes] == ["vLLM 0.10.0 as released"]
    v0, _ = line_of("granite-4.0-tiny V0")
    assert "&& VLLM_USE_V1=0 /env/bin/lm_eval" in v0
    assert "--model_args pretrained=ibm-granite/granite-4.0-tiny-preview --include_path" in v0


def test_a_subset_and_its_shots_are_told() -> None:
    line, notes = line_of("canary vllm V1")
    assert "--model_args '" in line  # the folder has a space in it
    assert "pretrained=/my place/canary/model,dtype=float32,enforce_eager=True,max_model_len=2048" in line
    assert "--batch_size auto --num_fewshot 3 --output_path" in line
    assert "asks 300 of 1319 questions" in notes[0]


def test_an_hf_lane_prefills_in_chunks_by_generation_arguments() -> None:
    line, notes = line_of("canary V1 full")
    assert "--model hf " in line
    assert "--batch_size 16 --num_fewshot 3 --gen_kwargs prefill_chunk_size=64 --output_path" in line
    assert "prefill_chunk_size" not in line.partition("--model_args")[2].partition("--include_path")[0]
    assert "transformers' own" in notes[0]
    assert "--gen_kwargs" not in line_of("canary V0 full")[0]
