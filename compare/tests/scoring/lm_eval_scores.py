"""Run in the eval environment: scores (response, target) pairs from standard input with lm-eval's own parts.

The filters' patterns and the metric's options are read from the gsm8k task file that lm-eval ships.
"""

import json
import sys
from pathlib import Path

import lm_eval
import yaml
from lm_eval.api.metrics import exact_match_hf_evaluate
from lm_eval.filters.extraction import RegexFilter
from lm_eval.filters.selection import TakeFirstFilter


def main() -> None:
    task = yaml.safe_load((Path(lm_eval.__file__).parent / "tasks/gsm8k/gsm8k.yaml").read_text())
    metric = task["metric_list"][0]
    options = {key: metric[key] for key in ("ignore_case", "ignore_punctuation", "regexes_to_ignore")}
    pairs = json.load(sys.stdin)
    json.dump([[list(scored(response, target, task, options)) for response, target in pairs]], sys.stdout)


def scored(response: str, target: str, task: dict, options: dict) -> list:
    for entry in task["filter_list"]:
        arguments = {key: value for key, value in entry["filter"][0].items() if key != "function"}
        (extracted,) = TakeFirstFilter().apply(RegexFilter(**arguments).apply([[response]], [{}]), [{}])
        right = exact_match_hf_evaluate(predictions=[extracted], references=[target], **options)["exact_match"]
        yield [entry["name"], extracted, float(right)]


if __name__ == "__main__":
    main()
