"""One evaluation from spec to last line: load, generate, force, score. The order of steps lives here, no numbers do."""

import logging
from dataclasses import replace
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.evaluator import evaluate

from ..line_channel import Channel
from ..score_fields import score_fields
from .comparability import must_match, recorded
from .enough import Enough, enough_after
from .granite_patch import GraniteOperators, install
from .kernels_loader import OPERATORS, load_kernels, serving_module
from .observed_lm import ObservedLM, ResponseFacts
from .refusal import Refusal, permanent
from .spec import EvaluationSpec
from .task_subset import SubsetTask, load_task, sample_fields
from .teacher_forced import forced_logprobs, forced_text

LOAD_STEPS = 4


def run_evaluation(spec: EvaluationSpec, channel: Channel) -> None:
    """Every line of an evaluation but the first and the last. Raises Refusal, or MemoryError when memory ran out."""
    try:
        _run(spec, channel)
    except torch.OutOfMemoryError as error:
        raise MemoryError(str(error)) from error


def _run(spec: EvaluationSpec, channel: Channel) -> None:
    torch.set_num_threads(spec.threads)
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    channel.send("progress", phase="load", done=1, total=LOAD_STEPS)
    lm = load_model(spec)
    channel.send("progress", phase="load", done=2, total=LOAD_STEPS)
    task = load_task(spec)
    channel.send("progress", phase="load", done=3, total=LOAD_STEPS)
    channel.send("progress", phase="import", done=0, total=1)
    kernels = load_kernels(spec.import_dir)
    channel.send("progress", phase="rehearse", done=0, total=1)
    operators = install(lm.model, kernels, spec.lane.backend)
    rehearse(lm, operators, spec)
    served = {operator: serving_module(kernels, operator, spec.lane.backend) for operator in OPERATORS}
    channel.send("environment", must_match=must_match(spec, lm, task), recorded=recorded(spec, lm, served))
    channel.send("progress", phase="load", done=4, total=LOAD_STEPS)
    generate(lm, task, spec, channel)
    force(lm, task, spec, channel)
    _check_schedule(lm, task, spec, operators)


def load_model(spec: EvaluationSpec) -> ObservedLM:
    """lm-eval's hf model on the lane's device. Raises Refusal: model_unloadable, no_gpu, wrong_dtype."""
    arguments = spec.lane.arguments
    if spec.device == "cuda" and not torch.cuda.is_available():
        raise permanent("no_gpu", f"the lane wants a {spec.lane.gpu_type}, but torch sees no CUDA device here")
    wanted = str(arguments.get("dtype", "float32"))
    optional = {
        name: arguments[name] for name in ("attn_implementation", "experts_implementation") if name in arguments
    }
    try:
        lm = ObservedLM(
            pretrained=str(spec.model_path),
            dtype=wanted,
            device=spec.device,
            batch_size=spec.batch_size,
            max_length=arguments.get("max_length"),
            trust_remote_code=bool(arguments.get("trust_remote_code", False)),
            **optional,
        )
    except Exception as error:
        raise permanent("model_unloadable", f"{spec.lane.model_name}: {type(error).__name__}: {error}") from error
    seen = str(lm.model.dtype).removeprefix("torch.")
    if wanted not in ("auto", seen):
        raise permanent("wrong_dtype", f"the lane wants {wanted}, the model came up in {seen}")
    return lm


def rehearse(lm: ObservedLM, operators: GraniteOperators, spec: EvaluationSpec) -> None:
    """A short generation of two unequal prompts under the lane's schedule: kernels that cannot run say so at once.

    The counts start anew afterwards. Raises Refusal: kernel_crashed, engine_mismatch.
    """
    chunk = spec.lane.prefill_chunk
    columns = 3 * (chunk or 8) - 2
    tokens = torch.arange(2 * columns, device=lm.device).view(2, columns) % min(lm.vocab_size, 64)
    mask = torch.ones_like(tokens)
    mask[1, : columns // 2] = 0
    schedule = {} if chunk is None else {"prefill_chunk_size": chunk}
    with torch.inference_mode():
        lm.model.generate(
            input_ids=tokens,
            attention_mask=mask,
            max_new_tokens=3,
            min_new_tokens=3,
            do_sample=False,
            use_cache=True,
            **schedule,
        )
    operators.calls.check_mode(spec.lane.mode, long_prompts=True)
    if missing := [operator for operator in OPERATORS if not operators.calls.by_operator[operator]]:
        raise permanent("engine_mismatch", f"the model did not call {', '.join(missing)} of the kernels under test")
    operators.restart_counts()


def generate(lm: ObservedLM, task: SubsetTask, spec: EvaluationSpec, channel: Channel) -> None:
    """Ask the questions through lm-eval's evaluate(): sample lines while it runs, its scores at the end.

    If the worker says that fewer are enough, the scores are those of the fewer.
    """
    rank = {doc_id: place for place, doc_id in enumerate(spec.doc_ids)}
    sent: dict[int, tuple[str, str, str]] = {}

    def finished(instance: Instance, response: str, facts: ResponseFacts) -> None:
        fields = sample_fields(task, instance)
        doc_id = fields["doc_id"]
        sent[doc_id] = (fields["doc_hash"], fields["prompt_hash"], fields["target_hash"])
        channel.send("sample", rank=rank[doc_id], response=response, **fields, **vars(facts))
        if len(sent) % lm.batch_size == 0 or len(sent) == len(rank):
            channel.send("progress", phase="generate", done=len(sent), total=len(rank))

    channel.send("progress", phase="generate", done=0, total=len(rank))
    given = spec.given
    lm.observe(spec.doc_ids, spec.block, finished, told=None if given is None else lambda: enough_after(given))
    results = _evaluated(lm, task, spec)
    samples = results["samples"][spec.lane.task]
    for sample in samples:
        if sent.get(sample["doc_id"]) != (sample["doc_hash"], sample["prompt_hash"], sample["target_hash"]):
            raise Refusal(
                "transient", "samples_differ", f"question {sample['doc_id']} was not sent as lm-eval scored it"
            )
    channel.send("scores", **score_fields(results, samples, task))


def _evaluated(lm: ObservedLM, task: SubsetTask, spec: EvaluationSpec) -> dict[str, Any]:
    """What lm-eval's evaluate() returns: of all questions, or of those that were enough."""
    try:
        results: dict[str, Any] = evaluate(lm, {"tasks": {spec.lane.task: task}})
    except Enough as enough:
        fewer = spec.doc_ids[: enough.after]
        lm.repeat(fewer)
        results = evaluate(lm, {"tasks": {spec.lane.task: load_task(replace(spec, doc_ids=fewer))}})
    return results


def force(lm: ObservedLM, task: SubsetTask, spec: EvaluationSpec, channel: Channel) -> None:
    """The teacher-forced pass over all of the lane's questions, also if fewer answers were enough: it costs little, and
    a test of a number of questions that was fixed beforehand needs no allowance for looking early."""
    channel.send("progress", phase="teacher_forced", done=0, total=len(task.instances))
    texts = [
        forced_text(lm, i.doc_id, i.args[0], task.config.target_delimiter + str(task.doc_to_target(i.doc)))
        for i in task.instances
    ]
    done = 0
    for batch in forced_logprobs(lm.model, texts, batch_size=spec.batch_size, chunk=spec.lane.prefill_chunk):
        for logprobs in batch:
            channel.send("teacher_forced", **logprobs.fields())
        done += len(batch)
        channel.send("progress", phase="teacher_forced", done=done, total=len(texts))


def _check_schedule(lm: ObservedLM, task: SubsetTask, spec: EvaluationSpec, operators: GraniteOperators) -> None:
    longest = max(len(lm.tok_encode(instance.args[0])) for instance in task.instances)
    chunk = spec.lane.prefill_chunk
    operators.calls.check_mode(spec.lane.mode, long_prompts=chunk is not None and longest > 2 * chunk)
