"""An lm-eval task whose questions are a subset and whose prompts are those of the full run.

lm-eval draws few-shot examples question after question from one seeded generator, so a subset built alone would get
other examples. Here requests are built for all questions, then only those of the subset are kept.
"""

import functools
import json
from collections.abc import Iterator
from typing import Any

from lm_eval import utils as lm_eval_utils
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

from .refusal import permanent
from .spec import EvaluationSpec

FEWSHOT_SEED = 1234
"""lm-eval's default, which its command line uses."""

DEFAULT_MAX_GEN_TOKS = 256
"""lm-eval's default for a task without max_gen_toks; written out because lm-eval records it nowhere."""


class SubsetTask(ConfigurableTask):  # type: ignore[misc]  # lm-eval is untyped here
    """A ConfigurableTask that asks only `doc_ids` (in document order, as lm-eval wants them)."""

    def __init__(self, config: dict[str, Any], doc_ids: tuple[int, ...]) -> None:
        self._kept: frozenset[int] | None = None
        self._instances: list[Instance] | None = None
        super().__init__(config=config)
        self._subset = frozenset(doc_ids)

    def build_all_requests(self, **options: Any) -> None:
        """Requests of the full run, then those of the subset."""
        self._kept = None
        super().build_all_requests(**options)
        self._kept = self._subset
        self._instances = [instance for instance in self.instances if instance.doc_id in self._subset]

    def doc_iterator(self, **options: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        """(doc_id, doc) of the subset once requests are built, of all documents before."""
        for doc_id, doc in super().doc_iterator(**options):
            if self._kept is None or doc_id in self._kept:
                yield doc_id, doc


def load_task(spec: EvaluationSpec) -> SubsetTask:
    """The lane's task on its pinned data. Raises Refusal task_invalid."""
    keep_templates()
    try:
        task = SubsetTask(task_config(spec), spec.doc_ids)
        questions = len(task.eval_docs)
    except Exception as error:
        raise permanent("task_invalid", f"{spec.task_yaml.name}: {type(error).__name__}: {error}") from error
    if task.OUTPUT_TYPE != "generate_until":
        raise permanent(
            "task_invalid", f"{spec.task_yaml.name}: output_type must be generate_until, got {task.OUTPUT_TYPE}"
        )
    if max(spec.doc_ids) >= questions:
        raise permanent("task_invalid", f"doc_ids reach {max(spec.doc_ids)}, but the task has {questions} questions")
    task.set_fewshot_seed(FEWSHOT_SEED)
    return task


def keep_templates() -> None:
    """Compile each template once. lm-eval compiles them anew for every text, 3 s for 1,319 questions; they render the
    same."""
    environment = lm_eval_utils.env
    if not hasattr(environment.from_string, "cache_info"):
        environment.from_string = functools.lru_cache(maxsize=256)(environment.from_string)


def task_config(spec: EvaluationSpec) -> dict[str, Any]:
    """The task file's configuration with the lane's data files, shots, length limit and prefill chunk put in."""
    config: dict[str, Any] = load_yaml(spec.task_yaml)
    if config.get("task") != spec.lane.task:
        raise ValueError(f"the file defines task {config.get('task')!r}, the lane wants {spec.lane.task!r}")
    arguments = spec.lane.arguments
    generation = dict(config.get("generation_kwargs") or {})
    generation["max_gen_toks"] = arguments.get("max_gen_toks", generation.get("max_gen_toks", DEFAULT_MAX_GEN_TOKS))
    if (chunk := spec.lane.prefill_chunk) is not None:
        generation["prefill_chunk_size"] = chunk
    return config | {
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": {"train": str(spec.train_path), "test": str(spec.test_path)}},
        "generation_kwargs": generation,
        "num_fewshot": arguments.get("num_fewshot", config.get("num_fewshot") or 0),
    }


def sample_fields(task: SubsetTask, instance: Instance) -> dict[str, Any]:
    """The parts of a sample line that the question alone decides; hashes as lm-eval makes them."""
    target = str(task.doc_to_target(instance.doc))
    document = json.dumps(instance.doc, indent=2, default=lm_eval_utils.handle_non_serializable, ensure_ascii=False)
    return {
        "doc_id": instance.doc_id,
        "doc_hash": lm_eval_utils.hash_string(document),
        "prompt_hash": lm_eval_utils.hash_string(instance.args[0]),
        "target_hash": lm_eval_utils.hash_string(target),
        "question": str(instance.doc.get("question", task.doc_to_text(instance.doc))),
        "target": target,
    }
