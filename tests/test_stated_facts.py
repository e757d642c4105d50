"""An import's facts are compared with those of a measurement: both must say one and the same thing in the same words."""

import json
import subprocess
from pathlib import Path

from driftline.lmeval import open_output
from driftline_service.imports.stated_facts import stated_facts

ROOT = Path(__file__).resolve().parent.parent
EVAL = ROOT / ".venv-eval" / "bin" / "python"
DATA = ROOT / "service" / "tests" / "imports" / "data"

CHILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from driftline_worker.children.hf_engine.spec import read_spec
from driftline_worker.children.hf_engine.task_subset import FEWSHOT_SEED, load_task
from driftline_worker.children.key_facts import compact
config = load_task(read_spec(Path(sys.argv[2]))).dump_config()
print(json.dumps({
    "task": config["task"], "num_fewshot": str(config["num_fewshot"]), "generation": compact(config["generation_kwargs"]),
    "filters": compact([entry["name"] for entry in config["filter_list"]]),
    "seeds": f"fewshot {FEWSHOT_SEED}; greedy decoding",
}))
"""
"""As hf_engine/comparability.py says them; loading the model would take longer and say no more of these."""


def test_what_lm_eval_wrote_says_what_the_evaluation_says(tmp_path):
    canary = ROOT / "canary"
    lane = {
        "name": "canary V0", "model": {"name": "canary"}, "engine": "hf", "mode": "V0", "backend": "torch",
        "task": {"name": "gsm8k_canary"}, "engine_arguments": {"dtype": "float32", "num_fewshot": 3},
    }  # fmt: skip
    files = {
        "import_dir": tmp_path, "model_path": canary / "model", "task_yaml": canary / "tasks" / "gsm8k_canary.yaml",
        "train_path": canary / "data" / "train.jsonl", "test_path": canary / "data" / "test.jsonl",
    }  # fmt: skip
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"lane": lane, "doc_ids": [0, 1]} | {name: str(path) for name, path in files.items()}))
    command = [EVAL, "-P", "-c", CHILD, ROOT / "worker", spec]
    environment = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    answer = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    measured = json.loads(answer.stdout.splitlines()[-1])
    output = open_output(DATA)
    stated = stated_facts(output.results, output.tasks["gsm8k_canary"].results)
    assert {name: stated[name] for name in measured if name in stated} == measured
    assert stated.keys() - measured.keys() == {"engine", "max_length", "chat_template", "lm_eval", "transformers"}
