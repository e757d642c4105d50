"""A small repository that is laid out as vLLM is, made by the git that runs here."""

from collections.abc import Callable
from pathlib import Path

import git_repository
import pytest
from driftline.contracts.lane import Lane
from driftline.git import Mirror
from driftline.lane_file import read_lanes

PROJECT = Path(__file__).parents[3]
OPS = "vllm/model_executor/layers/mamba/ops"
MODELS = "vllm/model_executor/models"

VLLM = {
    f"{OPS}/__init__.py": "",
    f"{OPS}/ssd_chunk_scan.py": "TILE = 64\n\ndef _chunk_scan_fwd(x):\n    return x * TILE\n",
    f"{OPS}/ssd_combined.py": (
        "from .ssd_chunk_scan import _chunk_scan_fwd\n\n"
        "def mamba_chunk_scan_combined_varlen(x):\n    return _chunk_scan_fwd(x)\n"
    ),
    f"{OPS}/mamba_ssm.py": (
        "def selective_scan_fn(x):\n    return x\n\ndef selective_state_update(x):\n    return -x\n"
    ),
    "vllm/model_executor/layers/mamba/mamba_mixer.py": (
        "from vllm.model_executor.layers.mamba.ops.mamba_ssm import selective_scan_fn\n\n"
        "class MambaMixer:\n    def forward(self, x):\n        return selective_scan_fn(x)\n"
    ),
    "vllm/model_executor/layers/mamba/mamba_mixer2.py": (
        "import torch\n"
        "from vllm.model_executor.layers.mamba.ops import mamba_ssm\n"
        "from vllm.model_executor.layers.mamba.ops.ssd_combined import mamba_chunk_scan_combined_varlen\n\n"
        "def sharded_loader(x):\n    return x\n\n"
        "def mamba_mixer2(x):\n    return mamba_ssm.selective_state_update(mamba_chunk_scan_combined_varlen(x))\n\n"
        "direct_register_custom_op(op_name='mamba_mixer2', op_func=mamba_mixer2)\n\n"
        "class MambaMixer2:\n    def forward(self, x):\n        torch.ops.vllm.mamba_mixer2(x)\n"
    ),
    f"{MODELS}/interfaces.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
        "    from vllm.model_executor.layers.mamba.ops.ssd_chunk_scan import TILE\n\nclass HasState:\n    tile: 'TILE'\n"
    ),
    f"{MODELS}/granitemoehybrid.py": (
        "from vllm.model_executor.layers.mamba.mamba_mixer2 import MambaMixer2\nfrom .interfaces import HasState\n\n"
        "class Layer:\n    def __init__(self):\n        self.mixer = MambaMixer2()\n\n"
        "class GraniteMoeHybridForCausalLM(HasState):\n    layer = Layer\n"
    ),
    f"{MODELS}/nemotron_h.py": (
        "class NemotronHForCausalLM:\n    def __init__(self):\n"
        "        from ..layers.mamba.mamba_mixer2 import MambaMixer2\n        self.mixer = MambaMixer2()\n"
    ),
    f"{MODELS}/nano_vl.py": (
        "class NanoVL:\n    def __init__(self, config):\n"
        "        self.text = init_vllm_registered_model(config, architectures=['NemotronHForCausalLM'])\n"
    ),
    f"{MODELS}/mamba.py": (
        "from vllm.model_executor.layers.mamba.mamba_mixer import MambaMixer\nfrom .interfaces import HasState\n\n"
        "class MambaForCausalLM(HasState):\n    mixer = MambaMixer\n"
    ),
    f"{MODELS}/qwen3_next.py": (
        "from vllm.model_executor.layers.mamba.mamba_mixer2 import sharded_loader\n\n"
        "class Qwen3NextForCausalLM:\n    load = sharded_loader\n"
    ),
    f"{MODELS}/registry.py": (
        "_TEXT = {\n"
        '    "GraniteMoeHybridForCausalLM": ("granitemoehybrid", "GraniteMoeHybridForCausalLM"),\n'
        '    "MambaForCausalLM": ("mamba", "MambaForCausalLM"),\n'
        '    "NemotronHForCausalLM": ("nemotron_h", "NemotronHForCausalLM"),\n'
        '    "NanoVL": ("nano_vl", "NanoVL"),\n'
        '    "Qwen3NextForCausalLM": ("vllm.model_executor.models.qwen3_next", "Qwen3NextForCausalLM"),\n}\n'
    ),
    "tests/models/registry.py": (
        '_EX = {"GraniteMoeHybridForCausalLM": _Info("ibm-granite/granite-4.0-tiny-preview"),\n'
        '       "NemotronHForCausalLM": _Info("nvidia/Nemotron-H-8B-Base-8K", trust_remote_code=True)}\n'
    ),
    "vllm/config.py": "SEED = 0\n",
    ".buildkite/test_areas/lm_eval.yaml": (
        "steps:\n- label: LM Eval Small Models\n  commands:\n"
        "  - pytest -s -v evals/gsm8k/test_gsm8k_correctness.py --config-list-file=configs/models-small.txt\n"
        "# - pytest test_lm_eval_correctness.py --config-list-file=configs/models-large.txt\n"
        "- label: unrelated\n  commands:\n  - pytest kernels/mamba -k ibm-granite/granite-4.0-tiny-preview\n"
    ),
    ".buildkite/lm-eval-harness/configs/models-large.txt": "Granite.yaml\n",
    ".buildkite/lm-eval-harness/configs/Granite.yaml": 'model_name: "ibm-granite/granite-4.0-tiny-preview"\n',
    "tests/evals/gsm8k/test_gsm8k_correctness.py": "import pytest\n",
    "tests/evals/gsm8k/configs/models-small.txt": "Qwen3.yaml\n",
    "tests/evals/gsm8k/configs/Qwen3.yaml": 'model_name: "Qwen/Qwen3-Next-80B-A3B"\naccuracy: 0.5\n',
}


@pytest.fixture
def commit(tmp_path: Path) -> Callable[..., str]:
    """Write files (None: remove them), commit them, give the SHA."""
    folder = git_repository.start(tmp_path / "repository")

    def write(files: dict[str, str | None]) -> str:
        return git_repository.commit(folder, "change", files)

    return write


@pytest.fixture
def mirror(tmp_path: Path) -> Callable[[], Mirror]:
    """Of the repository as it is when called."""

    def fetched() -> Mirror:
        made = Mirror.open(tmp_path / "cache", str(tmp_path / "repository"))
        made.fetch()
        return made

    return fetched


@pytest.fixture(scope="session")
def lanes() -> tuple[Lane, ...]:
    return read_lanes(PROJECT / "driftline.toml").all
