"""The scan: the one-launch walk where it serves, else five stages in order."""

from ..arguments import SsdArguments
from ..results import SsdResult
from . import ssd_walk
from .launch import refuse_float64
from .ssd_bmm import chunk_scores
from .ssd_chunk_scan import chunk_scan
from .ssd_chunk_state import chunk_states
from .ssd_cumsum import chunk_cumsum
from .ssd_state_passing import pass_states


def ssd_prefill(arguments: SsdArguments) -> SsdResult:
    """See `mamba2_varlen.ssd_prefill`. Products run in x's dtype with float32 sums; carried states stay in float32."""
    refuse_float64(arguments.x)
    if ssd_walk.serves(arguments):
        return ssd_walk.walk(arguments)
    step, decay = chunk_cumsum(arguments)
    states = chunk_states(arguments, step, decay)
    final, intermediate = pass_states(arguments, states, decay)
    chunk_scan(arguments, states, chunk_scores(arguments), step, decay)
    return SsdResult(arguments.out, final, intermediate)
