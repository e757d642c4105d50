"""The Triton kernels on a GPU: time against vLLM's and state-spaces/mamba's, and against what memory allows.

Everything runs in one process on one GPU. Equality with the float64 recurrence comes first: a red operator prints no
figure. `--vllm PATH` and `--mamba PATH` name checkouts whose operator files are imported alone; without them installed
packages are used where there are any, else the columns stay empty. Run with an idle GPU:
`python benchmarks/kernels.py [--vllm PATH] [--mamba PATH] [--json FILE] [--quick]`.

Two times are given for each operator: `eager`, as an engine calls it from Python, and `graph`, the replay of a CUDA
graph, which leaves Python and launches out. Medians over repeats with a cold L2 cache. A peer's own tuner runs first.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import kernel_gate
import kernel_peers
import kernel_points
import torch
from kernel_clock import Row, copy_bandwidth


def main() -> None:
    """Measure every part and print one line each; write JSON with --json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vllm", type=Path, help="a vLLM checkout")
    parser.add_argument("--mamba", type=Path, help="a state-spaces/mamba checkout")
    parser.add_argument("--json", type=Path, help="write all rows to this file")
    parser.add_argument("--quick", action="store_true", help="the first point of each part only")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks/kernels.py needs a CUDA GPU; benchmarks/ssd_cpu.py measures the CPU")
    vllm, mamba = kernel_peers.vllm_operators(options.vllm), kernel_peers.mamba_scan(options.mamba)
    faults = kernel_gate.faults()
    if faults:
        raise SystemExit("not measured, for results are wrong: " + "; ".join(faults))
    bandwidth = copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, copy {bandwidth / 1e12:.2f} TB/s")
    print(Row.HEADER)
    rows = []
    for row in kernel_points.rows(vllm, mamba, bandwidth, quick=options.quick):
        print(row.line(), flush=True)
        rows.append(row)
    for line in kernel_points.summary(rows):
        print(line)
    if options.json:
        report = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_bytes_per_s": bandwidth}
        options.json.write_text(json.dumps({**report, "rows": [asdict(row) for row in rows]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
