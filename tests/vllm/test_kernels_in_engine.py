"""Two commits of layout mamba2_varlen on the real V1 engine: the plugin puts each one's kernels in the place of vLLM's, and the
planted bug of the example is found by what the engine answers."""

import pytest
from example_run import finished

pytestmark = pytest.mark.vllm
LANE = "canary vllm V1 torch"
QUESTIONS = 24
SERVED = {
    "ssd_prefill": "ops.ssd_combined.mamba_chunk_scan_combined_varlen",
    "causal_conv1d_prefill": "ops.causal_conv1d.causal_conv1d_fn",
    "causal_conv1d_update": "ops.causal_conv1d.causal_conv1d_update",
    "selective_state_update": "ops.ssu_dispatch.selective_state_update",
    "rms_norm_gated": "mamba_mixer2.Mixer2RMSNormGated",
}


def test_a_commit_of_the_kernels_that_loses_decay_is_found_on_vllm(stack, example, rows):
    server = stack.server
    run_id = server.post(
        "/api/v1/runs",
        {
            "repo": str(example.path), "head": "initial-state-decay", "base": "main", "lanes": [LANE],
            "questions": QUESTIONS,
        },
    )["run_id"]  # fmt: skip

    view = finished(server, run_id)
    [lane] = view["lanes"]
    assert lane["verdict"] == "regressed", lane["reasons"]
    cells = {(cell["metric"], cell["filter"]): cell for cell in lane["comparisons"]}
    assert cells["logprob", "teacher-forced"]["head"] < cells["logprob", "teacher-forced"]["base"] - 0.005
    query = """
        select jobs.arm, attempts.recorded from attempts join jobs on jobs.adopted_attempt_id = attempts.id
        where jobs.run_id = %s and jobs.kind = 'evaluate'
    """
    recorded = dict(rows(query, run_id))
    assert set(recorded) == {"base", "head"}
    for arm in recorded.values():
        for operator, replaced in SERVED.items():
            assert arm[f"served.{operator}"].startswith("mamba2_varlen.torch_backend.")
            assert arm[f"served.{operator}"].endswith(f"in place of vllm.model_executor.layers.mamba.{replaced}")
