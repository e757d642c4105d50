"""Errors as real engines logged them -> their class. A line that no error wrote decides nothing."""

import pytest
from driftline_worker.children.vllm_engine.log_errors import ErrorClass, classify

CORE = "(EngineCore_DP0 pid=223840) ERROR 10-25 13:08:43 [core.py:708] "
DIED = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"

LINES = [
    (
        "(EngineCore_0 pid=1810465) ERROR 09-03 11:03:37 [core.py:712] ValueError: Free memory on device (7.34/139.72 GiB) "
        "on startup is less than desired GPU memory utilization (0.9, 125.75 GiB). Decrease GPU memory utilization or reduce "
        "GPU memory used by other processes.",
        ErrorClass.INFRASTRUCTURE, "gpu_memory_taken",
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 350.00 MiB. GPU 0 has a total capacity of 23.68 GiB",
        ErrorClass.TRANSIENT, "out_of_memory",
    ),
    (CORE + 'raise ValueError("No available memory for the cache blocks. "', ErrorClass.TRANSIENT, "no_cache_blocks"),
    (
        "ERROR 09-27 06:46:46 engine.py:157] RuntimeError: CUDA error: an illegal memory access was encountered",
        ErrorClass.TRANSIENT, "kernel_crashed",
    ),
    (
        "(Worker_PP0 pid=23220) ERROR 07-15 21:01:01 [multiproc_executor.py:1007] torch.AcceleratorError: CUDA error: an "
        "illegal memory access was encountered",
        ErrorClass.TRANSIENT, "kernel_crashed",
    ),
    (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 278528, Hardware limit: 232448.",
        ErrorClass.PERMANENT, "kernel_crashed",
    ),
    (
        "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
        ErrorClass.PERMANENT, "weights_broken",
    ),
    (
        "ConnectionError: Couldn't reach 'openai/gsm8k' on the Hub (OfflineModeIsEnabled)",
        ErrorClass.INFRASTRUCTURE, "hub_unreachable",
    ),
    (
        "OSError: We couldn't connect to 'https://huggingface.co' to load this file, couldn't find it in the cached files",
        ErrorClass.INFRASTRUCTURE, "hub_unreachable",
    ),
    (
        "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-68)",
        ErrorClass.INFRASTRUCTURE, "hub_refused",
    ),
    (
        "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
        ErrorClass.INFRASTRUCTURE, "driver_mismatch",
    ),
    ("RuntimeError: No CUDA GPUs are available", ErrorClass.INFRASTRUCTURE, "no_gpu"),
    ("RuntimeError: Failed to infer device type, please set the environment variable", ErrorClass.INFRASTRUCTURE, "no_gpu"),
    ("ValueError: Unknown dtype: 'float12'", ErrorClass.PERMANENT, "wrong_dtype"),
    (
        "ERROR 07-25 10:00:00 [core.py:586] ValueError: Bfloat16 is only supported on GPUs with compute capability of at least "
        "8.0. Your Tesla T4 GPU has compute capability 7.5.",
        ErrorClass.PERMANENT, "wrong_dtype",
    ),
    (
        "ImportError: /opt/vllm/_C.abi3.so: undefined symbol: _ZN3c106detail14torchCheckFailE",
        ErrorClass.INFRASTRUCTURE, "environment_broken",
    ),
    (
        "ValueError: To serve at least one request with the models's max seq len (131072), (8.00 GiB KV cache is needed, "
        "which is larger than the available KV cache memory (3.18 GiB).",
        ErrorClass.PERMANENT, "model_too_long",
    ),
    (
        "ValueError: The repository x contains custom code which must be executed to correctly load the model.",
        ErrorClass.PERMANENT, "remote_code_refused",
    ),
    (
        "ValueError: Model architectures ['XForCausalLM'] are not supported for now.",
        ErrorClass.PERMANENT, "model_unsupported",
    ),
    (
        "2026-12-02:08:46:12 WARNING  [models.vllm_causallms:700] Context length 322 exceeds max length (144). Truncating "
        "context.",
        ErrorClass.PERMANENT, "prompts_cut",
    ),
    ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", ErrorClass.TRANSIENT, "engine_died"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "error_class", "reason"), LINES, ids=[reason for _, _, reason in LINES])
def test_the_class_of_a_real_line(line: str, error_class: ErrorClass, reason: str) -> None:
    found = classify(f"INFO 12-02 08:46:12 [core.py:1] starting\n{line}\n{DIED}\n")
    assert found is not None
    assert (found.error_class, found.reason) == (error_class, reason)
    assert found.kind == ("permanent" if error_class is ErrorClass.PERMANENT else "transient")


def test_an_engine_that_died_of_something_unknown_names_it() -> None:
    found = classify(f"{CORE}TypeError: forward() got 3 arguments\n(APIServer pid=2) {DIED}\n")
    assert found is not None
    assert (found.reason, found.line) == ("engine_died", "TypeError: forward() got 3 arguments")


@pytest.mark.parametrize(
    "log",
    [
        "",
        "INFO 12-02 08:46:12 [llm.py:1] answer: CUDA out of memory. Tried to allocate 2 GiB",
        "Question: how is No available memory for the cache blocks fixed?",
        "(EngineCore pid=1) INFO 12-02 08:46:12 [weight_utils.py:1108] Error while deserializing header is what you see when",
    ],
)
def test_what_no_error_wrote_decides_nothing(log: str) -> None:
    assert classify(log) is None
