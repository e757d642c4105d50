"""What a case may ask for beside the common ground of all layouts."""

from enum import StrEnum


class Trait(StrEnum):
    """An adapter says which of these its kernels do not have at all, and which their callers never ask for."""

    CONVOLUTION = "convolution"
    EMPTY_SEQUENCES = "empty_sequences"
    WIDE_CONVOLUTION = "wide_convolution"
    CHUNK_SIZE_REFUSED = "chunk_size_refused"
    INTERMEDIATE_STATES = "intermediate_states"
    STATE_DTYPE = "state_dtype"
    STEP_LIMIT = "step_limit"
    CHANNEL_MAJOR = "channel_major"
    KEPT_PAST = "kept_past"
    MIXED_STATES = "mixed_states"
    HUGE_BATCH = "huge_batch"
