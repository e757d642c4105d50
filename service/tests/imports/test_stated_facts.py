"""What results files of other engines and older versions state; unsaid is unsaid, and has no entry."""

import json
from pathlib import Path
from typing import Any

from driftline.lmeval import open_output
from driftline_service.imports.stated_facts import stated_details, stated_facts

from . import lm_eval_files as files


def facts(folder: Path, **changes: Any) -> dict[str, str]:
    table = files.results()
    table["config"] |= changes.pop("config", {})
    table["configs"][files.TASK] |= changes.pop("task", {})
    (folder / files.RESULTS).write_text(json.dumps(table | changes))
    output = open_output(folder / files.RESULTS)
    return stated_facts(output.results, output.tasks[files.TASK].results)


def test_vllm_has_a_seed_and_a_limit_of_its_own(tmp_path: Path) -> None:
    generation = {"until": ["Question:"], "do_sample": False, "temperature": 0.0}
    stated = facts(
        tmp_path,
        config={"model": "vllm", "model_args": {"seed": 7, "max_gen_toks": 512}},
        task={"generation_kwargs": generation},
    )
    assert stated["engine"] == "vllm"
    assert stated["seeds"] == "fewshot 1234; engine 7; greedy decoding"
    assert json.loads(stated["generation"]) == generation | {"max_gen_toks": 512}
    stated = facts(
        tmp_path, config={"model": "vllm", "model_args": "pretrained=x"}, task={"generation_kwargs": generation}
    )
    assert stated["seeds"] == "fewshot 1234; engine 1234; greedy decoding"
    assert json.loads(stated["generation"])["max_gen_toks"] == 256


def test_what_is_not_said_has_no_entry(tmp_path: Path) -> None:
    sampled = {"until": ["Question:"], "do_sample": True}
    stated = facts(
        tmp_path, config={"model": "local-completions"}, task={"generation_kwargs": sampled, "filter_list": None},
        transformers_version=None, max_length=None, chat_template="{{ messages }}",
    )  # fmt: skip
    assert {"engine", "seeds", "filters", "transformers", "max_length", "chat_template"} & stated.keys() == set()
    output = open_output(tmp_path / files.RESULTS)
    details = stated_details(output.results, output.tasks[files.TASK].results)
    assert details["model"] == "local-completions"
    assert "limit" not in details
