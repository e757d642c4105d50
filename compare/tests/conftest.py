"""lm-eval's output files, made as lm-eval makes them: 0.4.8 and 0.4.13, tasks of one question each a line and filter."""

import gzip
import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import pytest

STAMP = "2026-01-02T03-04-05.678901"
UNTIL = ["Question:", "</s>", "<|im_end|>"]
FILTERS = {
    "strict-match": [{"function": "regex", "regex_pattern": "#### (\\-?[0-9\\.\\,]+)"}, {"function": "take_first"}],
    "flexible-extract": [
        {"function": "regex", "group_select": -1, "regex_pattern": "(-?[$0-9.,]{2,})|(-?[0-9]+)"},
        {"function": "take_first"},
    ],
}


def sha256(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class Evaluation:
    """What is written. `scores`: filter -> metric -> one score a question; the rest are departures from the usual."""

    scores: dict
    task: str = "gsm8k"
    version: str = "0.4.13"
    shots: int = 5
    model: str = "a-model"
    config: dict = field(default_factory=dict)
    task_config: dict = field(default_factory=dict)
    responses: dict = field(default_factory=dict)
    """doc_id -> response, where it is not the usual one"""
    question: str = "How much is {} and one?"
    total: int | None = None
    aggregation: str | None = "mean"
    higher_is_better: bool | None = True
    metric_values: dict = field(default_factory=dict)
    """metric -> reported score, where it is not the mean"""

    def lines(self):
        made = []
        for name, metrics in self.scores.items():
            count = len(next(iter(metrics.values())))
            for doc_id in range(count):
                doc = {"question": self.question.format(doc_id), "answer": f"It is that.\n#### {doc_id + 1}"}
                prompt = "Question: x\nAnswer: y\n\n" * self.shots + f"Question: {doc['question']}\nAnswer:"
                response = self.responses.get(doc_id, f" It is {doc_id + 1}.\n#### {doc_id + 1}")
                arguments = {"until": UNTIL, "do_sample": False, "temperature": 0.0}
                made.append(
                    {
                        "doc_id": doc_id, "doc": doc, "target": doc["answer"],
                        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": arguments}}, "resps": [[response]],
                        "filtered_resps": [str(doc_id + 1)], "filter": name, "metrics": list(metrics),
                        "doc_hash": sha256(json.dumps(doc, indent=2, ensure_ascii=False)),
                        "prompt_hash": sha256(prompt), "target_hash": sha256(doc["answer"]),
                        **{metric: values[doc_id] for metric, values in metrics.items()},
                    }
                )  # fmt: skip
        return made

    def results(self, lines):
        table = {} if self.version == "0.4.8" else {"name": self.task, "sample_len": self.count}
        table["alias"] = self.task
        for name, metrics in self.scores.items():
            for metric, values in metrics.items():
                numbers = [value for value in values if isinstance(value, int | float)]
                table[f"{metric},{name}"] = self.metric_values.get(metric, mean(numbers))
                table[f"{metric}_stderr,{name}"] = stderr(numbers)
        metrics = list(next(iter(self.scores.values())))
        listed = [{"metric": metric} for metric in metrics]
        for each in listed:
            each |= {} if self.aggregation is None else {"aggregation": self.aggregation}
        configuration = {
            "task": self.task, "doc_to_text": "Question: {{question}}\nAnswer:", "doc_to_target": "{{answer}}",
            "num_fewshot": self.shots, "output_type": "generate_until", "repeats": 1, "metric_list": listed,
            "generation_kwargs": {"until": UNTIL, "do_sample": False, "temperature": 0.0},
            "filter_list": [{"name": name, "filter": FILTERS.get(name, [])} for name in self.scores],
        } | self.task_config  # fmt: skip
        arguments = f"pretrained={self.model}" if self.version == "0.4.8" else {"pretrained": self.model}
        directions = {} if self.higher_is_better is None else dict.fromkeys(metrics, self.higher_is_better)
        return {
            "results": {self.task: table}, "group_subtasks": {self.task: []} if self.version == "0.4.8" else {},
            "configs": {self.task: configuration}, "versions": {self.task: 3.0}, "n-shot": {self.task: self.shots},
            "higher_is_better": {self.task: directions},
            "n-samples": {self.task: {"original": self.total or self.count, "effective": self.count}},
            "config": {"model": "hf", "model_args": arguments, "batch_size": "1", "batch_sizes": [], "use_cache": None,
                       "limit": None, "random_seed": 0, "fewshot_seed": 1234} | self.config,
            "git_hash": None, "date": 1796173501.7, "transformers_version": "5.24.0", "lm_eval_version": self.version,
            "model_name": self.model, "model_source": "hf", "chat_template_sha": None,
            "task_hashes": {self.task: sha256("".join(
                line["doc_hash"] + line["prompt_hash"] + line["target_hash"] for line in lines))},
            "total_evaluation_time_seconds": "2.14",
        }  # fmt: skip

    @property
    def count(self):
        return len(next(iter(next(iter(self.scores.values())).values())))


def mean(numbers):
    return sum(numbers) / len(numbers) if numbers else math.nan


def stderr(numbers):
    if len(numbers) < 2:
        return "N/A"
    middle = mean(numbers)
    return math.sqrt(sum((each - middle) ** 2 for each in numbers) / (len(numbers) - 1) / len(numbers))


class Files:
    """Builders of evaluations on disk, by name."""

    Evaluation = Evaluation
    STAMP = STAMP

    @staticmethod
    def gsm8k(right, **departures):
        """Both of gsm8k's filters with the same outcome."""
        scores = {name: {"exact_match": [float(each) for each in right]} for name in FILTERS}
        return Evaluation(scores, **departures)

    @staticmethod
    def write(folder: Path, *evaluations, edit=None, edit_results=None, zipped=False, stamp=STAMP):
        """Write the evaluations as one output folder. `edit` gets each task's list of lines, `edit_results` the results."""
        inside = folder / "a-model"
        inside.mkdir(parents=True)
        whole = {}
        for evaluation in evaluations:
            lines = evaluation.lines()
            merge(whole, evaluation.results(lines))
            lines = edit(lines) if edit else lines
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            path = inside / f"samples_{evaluation.task}_{stamp}.jsonl"
            content = text.encode("utf-8", "surrogatepass")
            if zipped:
                Path(f"{path}.gz").write_bytes(gzip.compress(content))
            else:
                path.write_bytes(content)
        if edit_results:
            edit_results(whole)
        (inside / f"results_{stamp}.json").write_text(json.dumps(whole, indent=2))
        return folder


def merge(whole, more):
    for name, value in more.items():
        whole[name] = whole[name] | value if isinstance(value, dict) and name in whole else value


@pytest.fixture(scope="session")
def lm_eval_files():
    return Files
