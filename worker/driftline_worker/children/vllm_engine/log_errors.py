"""What a vLLM log says about why there is no evaluation. A pure function of text: never a score, always a class.

`transient`: another attempt may pass (memory, a device that fell over). `permanent`: another attempt repeats it (weights,
architecture, arguments). `infrastructure`: the machine or the network, not the commit; it is tried again and blames nobody.
Only lines of an error are looked at: a traceback's last line or one that vLLM logged as ERROR, so that a model's answer or
a prompt in an INFO line decides nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LINE_CHARACTERS: Final = 600
"""Of a line that is quoted; a config line has thousands."""


class ErrorClass(StrEnum):
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True)
class LogError:
    """`kind` and `reason` are a failure line's; `line` is the one that told."""

    error_class: ErrorClass
    reason: str
    line: str

    @property
    def kind(self) -> str:
        """The failure line's kind: infrastructure is tried again, as a transient failure is."""
        return "permanent" if self.error_class is ErrorClass.PERMANENT else "transient"


ENGINE_DIED: Final = "engine_died"

_TRANSIENT, _PERMANENT, _INFRASTRUCTURE = ErrorClass.TRANSIENT, ErrorClass.PERMANENT, ErrorClass.INFRASTRUCTURE

_SIGNS: Final[tuple[tuple[ErrorClass, str, str], ...]] = (
    # the machine
    (_INFRASTRUCTURE, "gpu_memory_taken", r"Free memory on device.*less than desired GPU memory utilization"),
    (_INFRASTRUCTURE, "gpu_memory_taken", r"Error in memory profiling\. Initial free memory"),
    (_INFRASTRUCTURE, "no_gpu", r"No CUDA GPUs are available|Found no NVIDIA driver|no CUDA-capable device is detected"),
    (_INFRASTRUCTURE, "no_gpu", r"Failed to infer device type|Device string must not be empty"),
    (_INFRASTRUCTURE, "driver_mismatch", r"NVIDIA driver on your system is too old|CUDA driver version is insufficient"),
    (_INFRASTRUCTURE, "driver_mismatch", r"no kernel image is available for execution on the device"),
    (_INFRASTRUCTURE, "device_broken", r"uncorrectable ECC error|GPU has fallen off the bus|CUDA error: unspecified launch"),
    (_INFRASTRUCTURE, "environment_broken", r"(?:ImportError|OSError): .*(?:undefined symbol|cannot open shared object file)"),
    (_INFRASTRUCTURE, "environment_broken", r"ModuleNotFoundError: No module named 'vllm\._C|No module named 'torch'"),
    (_INFRASTRUCTURE, "port_taken", r"Address already in use|EADDRINUSE"),
    # A full disk is not read from a log: the worker looks at the disk itself.
    # the hub
    (_INFRASTRUCTURE, "hub_unreachable", r"We couldn't connect to 'https?://|Couldn't reach '.*' on the Hub|OfflineModeIsEnabled"),
    (_INFRASTRUCTURE, "hub_unreachable", r"LocalEntryNotFoundError|(?:50[234]|429) (?:Server|Client) Error|ReadTimeoutError"),
    (_INFRASTRUCTURE, "hub_refused", r"GatedRepoError|RepositoryNotFoundError|Cannot access gated repo|40[134] Client Error"),
    # the plugin's own words
    (_PERMANENT, "ops_unserved", r"UnservedError: "),
    (_PERMANENT, "kernel_crashed", r"KernelError: "),
    # memory
    (_TRANSIENT, "out_of_memory", r"OutOfMemoryError|CUDA out of memory|DefaultCPUAllocator: can't allocate"),
    (_TRANSIENT, "no_cache_blocks", r"No available memory for the cache blocks"),
    (_PERMANENT, "model_too_long", r"larger than the available KV cache memory|max seq len .* is larger than the maximum"),
    # kernels: the commit's own
    (_TRANSIENT, "kernel_crashed", r"CUDA error: (?:an illegal memory access|misaligned address|device-side assert)"),
    (_PERMANENT, "kernel_crashed", r"OutOfResources: out of resource|triton\.compiler\.errors\.\w+"),
    (_TRANSIENT, "device_error", r"CUDA error: |CUBLAS_STATUS_\w+|NCCL error|CUDNN_STATUS_\w+"),
    # weights, tokenizer, arguments
    (_PERMANENT, "weights_broken", r"SafetensorError|InvalidHeader|MetadataIncompleteBuffer|PytorchStreamReader failed"),
    (_PERMANENT, "model_unloadable", r"Can't load tokenizer for|Couldn't instantiate the backend tokenizer"),
    (_PERMANENT, "remote_code_refused", r"trust_remote_code=True|contains custom code which must be executed"),
    (_PERMANENT, "model_unsupported", r"Model architectures? .* (?:is|are) not supported|Cannot find model module"),
    (_PERMANENT, "wrong_dtype", r"Unknown dtype: |Bfloat16 is only supported on GPUs"),
    (_PERMANENT, "arguments_refused", r"unexpected keyword argument|validation errors? for \w*Config|is not supported on"),
    # prompts
    (_PERMANENT, "prompts_cut", r"Truncating context|exceeds max length \(\d+\)"),
    # nothing else is known
    (_TRANSIENT, ENGINE_DIED, r"EngineDeadError|EngineCore encountered an issue|Engine core initialization failed"),
)  # fmt: skip
"""In this order: what tells a cause comes before what only tells that the engine is gone."""

_COMPILED: Final = tuple((one, reason, re.compile(pattern)) for one, reason, pattern in _SIGNS)

_PREFIX: Final = re.compile(
    r"^(?:\x1b\[[0-9;]*m)*(?:\((?:EngineCore|Vllm|Worker|APIServer)[^)]*\)\s?)?(?:\x1b\[[0-9;]*m)*"
)
_LOGGED: Final = re.compile(
    r"(?:ERROR|CRITICAL) \d\d-\d\d[ \d:]*\S+ ?\S*\] ?|.*?WARNING\b.*?(?=Context length|Truncating)"
)
_ERROR: Final = re.compile(
    r"(?:[A-Za-z_][\w.]*(?:Error|Exception|OutOfResources|InvalidHeader|Enabled)\b|Context length \d+)"
)


def classify(log: str) -> LogError | None:
    """The class of a log, by the first sign in order of telling; None if no line of an error is known."""
    errors = list(_error_lines(log.splitlines()))
    for error_class, reason, sign in _COMPILED:
        for line in errors:
            if sign.search(line):
                told = _cause(errors, sign) if reason == ENGINE_DIED else line
                return LogError(error_class, reason, told[:LINE_CHARACTERS])
    return None


def _cause(errors: list[str], sign: re.Pattern[str]) -> str:
    """The last thing that went wrong, if any line tells: that the engine is gone tells nothing by itself."""
    causes = [line for line in errors if _ERROR.match(line) and not sign.search(line)]
    return causes[-1] if causes else next(line for line in errors if sign.search(line))


def _error_lines(lines: Iterable[str]) -> Iterable[str]:
    """Messages of errors: what vLLM logged as one, and lines that begin with an exception's name."""
    for raw in lines:
        line = _PREFIX.sub("", raw)
        logged = _LOGGED.match(line)
        text = line[logged.end() :].strip() if logged else line
        if logged or _ERROR.match(text):
            yield text
